// Planner: scenario in, plan out. The facade over the planner's steps:
//
//   make_context -> pipeline schedule -> stage layouts -> per class: data-parallel kind, stage
//   emitter, optimizer -> sections -> checks (core/check/, called by who wants them).
//
//   const Plan plan = make_plan(resolved(scenario));
//   const PlanReport summary = summarize(resolved(scenario));   // the same, only counted
#pragma once

#include <vector>

#include "core/plan.h"
#include "core/plan_summary.h"
#include "core/planner/schedule/schedule.h"
#include "core/planner/stage_layout.h"
#include "core/scenario.h"
#include "core/stop_check.h"

namespace lockstep {

/// What to emit besides init and step.
struct PlanOptions {
  bool evaluate = true;
  bool save = true;
  StopCheck stop_check = {};
};

/// Builds the plan of a validated, resolved scenario. NotSupportedError when it would have more
/// than 50,000,000 operations.
Plan make_plan(const Scenario& scenario, const PlanOptions& options = {});

/// The steady step of every class, counted instead of emitted.
struct PlanSummary {
  std::vector<ProgramSummary> classes;
  std::vector<Communicator> communicators;  ///< what OperationCount::communicator indexes
  std::vector<Shape> shapes;                ///< what OperationCount::shape indexes
  Mesh mesh;
  AxisMask class_axes = 0;  ///< as Plan::class_axes
  bool tf32 = false;        ///< as Plan::tf32
  std::int32_t microbatches = 1;
  /// Makespan of the pipeline schedule over its compute when every phase costs the same: 1 = no
  /// bubble.
  double pipeline_stretch = 1;
};
PlanSummary summarize_plan(const Scenario& scenario);
/// The same, counted in one go: what summarizer.h falls back on.
PlanSummary count_plan(const Scenario& scenario);

/// Plan::class_axes: classes differ by pipeline coordinate, and by data coordinate where owners
/// differ.
AxisMask class_axes(const Scenario& scenario);

/// PlanSummary::pipeline_stretch of a schedule.
double pipeline_stretch(const Schedule& schedule);
/// The schedule with sends and receives, and which segments live where; shared with reports.
Schedule pipeline_schedule(const Scenario& scenario);
StageLayout stage_layout(const Scenario& scenario,
                         const ModelGraph& graph,
                         const Schedule& schedule,
                         int pipeline_coordinate);

}  // namespace lockstep
