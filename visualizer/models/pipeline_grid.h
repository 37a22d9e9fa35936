// PipelineGrid: a pipeline as rows of cells: which rank worked on which micro-batch of which stage,
// when, and how many activations it held. The same struct for what a trace says (nanoseconds) and
// for a schedule under unit costs (ticks), so that both are painted by one painter.
//
//     const PipelineGrid real = pipeline_grid(scenario, plan, step);
//     const PipelineGrid ideal = pipeline_grid(compute_only(pipeline_schedule(scenario)), {});
//     for (const PipelineRow& row : real.rows)
//       for (const PipelineCell& cell : row.cells)
//         box(row, cell.begin, cell.end, letter_of(cell.kind), cell.microbatch);
//     if (const auto formula = bubble_formula(scenario)) label(formula->text());
//
// What it is not: all that a rank does (timeline.h), a simulation, or a place to edit a schedule
// (pipeline_edit.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/planner/schedule/schedule.h"
#include "core/planner/schedule/unit_time.h"
#include "core/scenario.h"
#include "core/trace_index.h"

namespace lockstep::view {

/// One forward or backward of one micro-batch through one stage.
struct PipelineCell {
  ActionKind kind = ActionKind::kForward;  ///< F, B, I or W; recomputation is part of B or I
  std::int32_t stage = 0;                  ///< virtual stage
  std::int32_t chunk = 0;                  ///< of its rank
  std::int32_t microbatch = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t busy = 0;  ///< of it the compute stream computed; less where it waited
  /// First and last operation of the rank's program; kNoSpan in unit time.
  std::uint32_t first = kNoSpan;
  std::uint32_t last = kNoSpan;
};

/// From `time` on there are so many.
struct LiveChange {
  std::int64_t time = 0;
  std::int64_t count = 0;
};

struct PipelineRow {
  std::int32_t coordinate = 0;  ///< along the pipeline
  std::int32_t rank = 0;
  std::vector<PipelineCell> cells;  ///< in time, without overlap
  std::vector<LiveChange> live;     ///< forwards that began and have not had their whole backward
  std::int64_t peak_live = 0;
  std::int64_t peak_time = 0;              ///< when it is first reached
  std::vector<LiveChange> activations;     ///< bytes of activations; empty in unit time
  std::int64_t peak_activation_bytes = 0;  ///< 0 in unit time
  std::int64_t working = 0;                ///< length of its cells
  std::int64_t stalled = 0;                ///< of that without computing: waiting for messages
};

struct PipelineGrid {
  std::vector<PipelineRow> rows;  ///< by pipeline coordinate
  std::int32_t chunks = 1;
  std::int32_t microbatches = 1;
  std::int64_t begin = 0;           ///< of the first cell
  std::int64_t end = 0;             ///< of the last
  std::int64_t ticks_per_unit = 0;  ///< 0: times are nanoseconds

  std::int64_t length() const { return end - begin; }
  /// Part of the time between the first and the last cell of all ranks in which a rank is in none.
  double bubble(const PipelineRow& row) const;
  double bubble() const;
};

/// 'F', 'B', 'I', 'W'.
char letter_of(ActionKind kind);

/// What the ranks of the pipeline of `rank` did in a step of training. The scenario is the resolved
/// one of the plan. BadInputError when the trace does not fit the plan.
PipelineGrid pipeline_grid(const Scenario& scenario,
                           const Plan& plan,
                           const TraceStep& step,
                           int rank = 0);
/// The schedule under unit costs; its sends and receives take no place.
PipelineGrid pipeline_grid(const Schedule& schedule, const UnitCosts& costs);

/// The idle fraction of the textbook, for equal stages and free messages.
struct BubbleFormula {
  std::string schedule;  ///< "1f1b"
  std::string symbols;   ///< "(P-1) / (M + P-1)"
  std::string values;    ///< "3 / (8 + 3)"
  double fraction = 0;
  std::string text() const;  ///< "1f1b: (P-1) / (M + P-1) = 3 / (8 + 3) = 27.3 %"
};
/// None for schedules without a closed form: custom ones, and fewer micro-batches than fill the
/// pipeline.
std::optional<BubbleFormula> bubble_formula(const ScheduleRequest& request);
std::optional<BubbleFormula> bubble_formula(const Scenario& scenario);

}  // namespace lockstep::view
