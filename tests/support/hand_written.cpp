#include "tests/support/hand_written.h"

#include "core/check.h"
#include "core/planner/data/replicated.h"
#include "core/planner/optimizer.h"
#include "core/planner/planner.h"
#include "core/planner/stage_emitter.h"

namespace lockstep::test {
namespace {

/// Whole (tensor-parallel local) parameters, gradients and states on every rank.
class ReduceToLast : public ReplicatedParameters {
 public:
  using ReplicatedParameters::ReplicatedParameters;

  void finish_gradients(ProgramBuilder& b) override {
    const int ranks = b.tables().mesh().size(Axis::kData);
    if (ranks == 1) {
      return;
    }
    const std::uint8_t group = b.tables().communicator(mask_of(Axis::kData));
    const Extras to_last{.stream = Stream::kData, .root = static_cast<std::int16_t>(ranks - 1)};
    b.at(Phase::kReduce);
    for_each_parameter(b, [&](std::int32_t parameter) {
      const View sum = final_gradient(b, parameter);
      b.collective(
          Collective::kReduce, group, Reduction::kAverage, sum.elements, sum, sum, to_last);
      b.collective(
          Collective::kBroadcast, group, Reduction::kNone, sum.elements, sum, sum, to_last);
    });
  }
};

/// The one class of ranks: all run the same programs.
class Writer {
 public:
  explicit Writer(const Scenario& scenario)
      : graph_(build_model_graph(scenario.model, scenario.training)),
        context_(make_context(scenario, *graph_)),
        schedule_(pipeline_schedule(scenario)),
        stage_(stage_layout(scenario, *graph_, schedule_, 0)),
        tables_(context_.mesh, graph_),
        b_(tables_, ProgramBuilder::Mode::kEmit),
        data_({context_, stage_, buffers_, 0}) {}

  Plan write() {
    Plan& plan = tables_.plan();
    plan.microbatches = context_.microbatches;
    plan.variant_of_iteration = {0};
    section(SectionKind::kInit, [this] { init(); });
    section(SectionKind::kStep, [this] { step(); });
    section(SectionKind::kEvaluate, [this] { evaluate(); });
    section(SectionKind::kSave, [this] { save(); });
    plan.buffers.push_back(b_.take_buffers());
    return std::move(plan);
  }

 private:
  template <typename Body>
  void section(SectionKind kind, Body&& body) {
    b_.begin_section();
    body();
    Section& section = tables_.plan().sections.emplace_back();
    section.kind = kind;
    section.programs.push_back(b_.end_section());
  }

  void init() {
    b_.at(Phase::kInit);
    buffers_.loss =
        b_.alloc(Category::kTemporary, context_.wide_dtype, 1, {.lifetime = Lifetime::kPersistent});
    b_.compute(Work::kInitialize, Shape{{1}}, {}, {b_.whole(buffers_.loss)});
    data_.initialize(b_);
    data_.create_masters(b_);
    data_.allocate_states(b_);
  }

  void step() {
    b_.at(Phase::kForward);
    data_.begin_step(b_, 0);
    StageEmitter(context_, stage_, schedule_, b_, data_, buffers_).run_step();
    data_.finish_gradients(b_);
    emit_optimizer(b_, context_, buffers_, data_);
    b_.at(Phase::kOptimizer);
    data_.finish_step(b_);
    data_.report_loss(b_, b_.whole(buffers_.loss));
  }

  void evaluate() {
    StageEmitter(context_, stage_, schedule_, b_, data_, buffers_).run_evaluation();
    b_.at(Phase::kEvaluate);
    data_.finish_step(b_);
    data_.report_loss(b_, b_.whole(buffers_.loss));
  }

  void save() {
    b_.at(Phase::kSave);
    data_.save(b_);
    const BufferId arrivals = b_.alloc(Category::kTemporary, DType::kInt32, 1);
    const View all = b_.whole(arrivals);
    b_.compute(Work::kZero, Shape{{1}}, {}, Views(&all, 1));
    const AxisMask everybody = present_axes(context_.mesh);
    if (everybody != 0) {
      b_.collective(Collective::kBarrier,
                    tables_.communicator(everybody, 0, true),
                    Reduction::kNone,
                    1,
                    all,
                    all,
                    {.stream = Stream::kData, .flags = kControl | kHostSync});
    }
    b_.host(Work::kCommit, Shape{}, Views(&all, 1), {});
    b_.free(arrivals);
  }

  std::shared_ptr<const ModelGraph> graph_;
  PlannerContext context_;
  Schedule schedule_;
  StageLayout stage_;
  PlanBuilder tables_;
  ProgramBuilder b_;
  StageBuffers buffers_;
  ReduceToLast data_;
};

}  // namespace

Plan hand_written_plan(const Scenario& scenario) {
  LOCKSTEP_CHECK(scenario.strategy.pipeline.degree == 1, "this strategy has no pipeline");
  LOCKSTEP_CHECK(!scenario.training.scales_loss(), "this strategy does not scale the loss");
  LOCKSTEP_CHECK(scenario.training.loss_mean == LossMean::kMeanOfMeans,
                 "this strategy averages means");
  return Writer(scenario).write();
}

}  // namespace lockstep::test
