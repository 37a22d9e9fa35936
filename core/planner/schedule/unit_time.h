// Exact time of a schedule under unit costs: the textbook picture of a pipeline, in integers.
//
// Forward, input gradient and weight gradient of one micro-batch cost a whole number on a rank;
// each of the rank's V chunks takes a V-th of it, so times are counted in ticks of 1/V. Messages
// are free unless they are given a cost, which delays what waits for them and occupies no rank.
// This is for reports, lessons and tests; real durations are the simulator's business.
//
//     UnitTime t = time_schedule(make_schedule({ScheduleKind::kZbV, 4, 2, 8}));
//     t.makespan();  // 25.5, and t.bubble_fraction() is 1.5 / 25.5
#pragma once

#include <cstdint>
#include <vector>

#include "core/planner/schedule/schedule.h"

namespace lockstep {

/// Cost per micro-batch and rank (all chunks of the rank together). A whole backward costs both.
struct UnitCosts {
  std::int32_t forward = 1;
  std::int32_t backward_input = 1;
  std::int32_t backward_weight = 1;
  std::int32_t message = 0;  ///< of every message between ranks, whatever the chunks
};

struct ActionTime {
  std::int64_t start = 0;  ///< ticks
  std::int64_t end = 0;    ///< ticks
};

struct UnitTime {
  std::int64_t ticks_per_unit = 1;  ///< V
  std::int64_t makespan_ticks = 0;
  std::int64_t busy_ticks = 0;                 ///< compute of all ranks together
  std::vector<std::vector<ActionTime>> times;  ///< by rank and action, like Schedule::ranks
  std::vector<std::int32_t> peak_live_chunks;  ///< by rank, see peak_live_chunks()

  double makespan() const {
    return static_cast<double>(makespan_ticks) / static_cast<double>(ticks_per_unit);
  }
  /// Idle part of the step, averaged over ranks: 0 when all ranks compute all the time.
  double bubble_fraction() const;
};

/// Each action starts when its rank is free and what it needs is there; others cost nothing.
UnitTime time_schedule(const Schedule& schedule, const UnitCosts& costs = {});

/// By rank: the most chunk activations alive at once. One lives from the start of the forward to
/// the end of B or W. Follows from the order alone, whatever the actions cost.
std::vector<std::int32_t> peak_live_chunks(const Schedule& schedule);

/// The same as a closed form, without making the schedule: formulas 3A of the in-flight table.
std::int64_t peak_live_chunks(const ScheduleRequest& request, std::int32_t rank);

}  // namespace lockstep
