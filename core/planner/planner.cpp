#include "core/planner/planner.h"

#include "core/check/plan_check.h"
#include "core/planner/class_emitter.h"
#include "core/planner/schedule/action_csv.h"
#include "core/planner/schedule/communication.h"
#include "core/planner/schedule/unit_time.h"
#include "core/planner/summarizer.h"

namespace lockstep {

AxisMask class_axes(const Scenario& scenario) {
  const DataStrategy& data = scenario.strategy.data;
  const bool owners =
      data.kind == DataKind::kDp ||
      (data.kind == DataKind::kZero1 && data.flavour == ZeroFlavour::kZeroRedundancyOptimizer);
  return static_cast<AxisMask>(mask_of(Axis::kPipeline) |
                               (owners ? mask_of(Axis::kData) : AxisMask{0}));
}

namespace {

/// The pipeline and data coordinates of a class.
struct ClassPlace {
  int pipeline = 0;
  int data = 0;
};

ClassPlace place_of(const Mesh& mesh, AxisMask axes, int class_index) {
  if ((axes & mask_of(Axis::kData)) == 0) {
    return {class_index, 0};
  }
  return {class_index / mesh.size(Axis::kData), class_index % mesh.size(Axis::kData)};
}

}  // namespace

Schedule pipeline_schedule(const Scenario& scenario) {
  const PipelineStrategy& pipeline = scenario.strategy.pipeline;
  if (!pipeline.actions_csv.empty()) {
    return add_communication(compute_only(read_action_csv(pipeline.actions_csv)));
  }
  ScheduleRequest request;
  request.kind = pipeline.degree == 1 ? ScheduleKind::kGPipe : pipeline.schedule;
  request.pipeline_degree = static_cast<std::int32_t>(pipeline.degree);
  request.chunks = pipeline.degree == 1 ? 1 : static_cast<std::int32_t>(pipeline.chunks);
  request.microbatches = static_cast<std::int32_t>(scenario.training.accumulate);
  return add_communication(make_schedule(request));
}

double pipeline_stretch(const Schedule& schedule) {
  return 1 / (1 - time_schedule(schedule).bubble_fraction());
}

Plan make_plan(const Scenario& scenario, const PlanOptions& options) {
  std::int64_t operations = 0;
  for (const ProgramSummary& program : summarize_plan(scenario).classes) {
    operations += program.operations;
  }
  refuse_if_too_large(operations);
  check_stop(options.stop_check);
  std::shared_ptr<const ModelGraph> graph = build_model_graph(scenario.model, scenario.training);
  const PlannerContext context = make_context(scenario, *graph);
  const Schedule schedule = pipeline_schedule(scenario);
  PlanBuilder tables(context.mesh, graph, options.stop_check);
  Plan& plan = tables.plan();
  plan.class_axes = class_axes(scenario);
  plan.microbatches = context.microbatches;
  plan.host_shared = scenario.strategy.data.kind == DataKind::kDp;
  plan.tf32 = scenario.training.precision == Precision::kTf32;
  const int classes = plan.class_count();
  for (int index = 0; index < classes; ++index) {
    const ClassPlace place = place_of(context.mesh, plan.class_axes, index);
    const StageLayout stage = stage_layout(scenario, *graph, schedule, place.pipeline);
    ClassEmitter emitter(tables, context, stage, schedule, place.data, ProgramBuilder::Mode::kEmit);
    emitter.emit(plan, options);
    plan.buffers.push_back(emitter.take_buffers());
  }
  return std::move(plan);
}

PlanSummary summarize_plan(const Scenario& scenario) {
  return Summarizer().summarize(scenario);
}

PlanSummary count_plan(const Scenario& scenario) {
  std::shared_ptr<const ModelGraph> graph = build_model_graph(scenario.model, scenario.training);
  const PlannerContext context = make_context(scenario, *graph);
  const Schedule schedule = pipeline_schedule(scenario);
  PlanBuilder tables(context.mesh, graph);
  tables.plan().class_axes = class_axes(scenario);
  PlanSummary summary;
  const int classes = tables.plan().class_count();
  for (int index = 0; index < classes; ++index) {
    const ClassPlace place = place_of(context.mesh, tables.plan().class_axes, index);
    const StageLayout stage = stage_layout(scenario, *graph, schedule, place.pipeline);
    ClassEmitter emitter(
        tables, context, stage, schedule, place.data, ProgramBuilder::Mode::kCount);
    summary.classes.push_back(emitter.count_steady_step());
  }
  summary.communicators = std::move(tables.plan().communicators);
  summary.shapes = std::move(tables.plan().shapes);
  summary.mesh = context.mesh;
  summary.class_axes = tables.plan().class_axes;
  summary.tf32 = scenario.training.precision == Precision::kTf32;
  summary.microbatches = context.microbatches;
  summary.pipeline_stretch = pipeline_stretch(schedule);
  return summary;
}

}  // namespace lockstep
