// MemoryTimeline: device bytes of a rank by category while a step runs.
//
// The count is the plan's, in program order (rule R1 of core/plan.h), so its peak is exact and does
// not depend on times; only where a change is drawn does: an alloc when the next operation of the
// compute stream starts, or the very next operation if that is earlier; a free when the operation
// of the compute stream before it has ended. Times never fall from sample to sample.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan_summary.h"
#include "core/trace_index.h"

namespace lockstep {

/// What a class holds when `section` begins: init, and the step sections before it, have run.
CategoryBytes bytes_before(const Plan& plan, int class_index, int section);

struct MemorySample {
  Nanoseconds time = 0;
  CategoryBytes bytes{};              ///< from now on
  std::uint32_t operation = kNoSpan;  ///< the alloc or free; kNoSpan for the first sample
};

/// The first sample stands at the beginning of the step.
std::vector<MemorySample> memory_timeline(const TraceIndex& index, int track);
std::vector<MemorySample> memory_timeline(const Plan& plan, const TraceStep& step, int rank);

/// The highest moment of one section.
struct MemoryMoment {
  CategoryBytes bytes{};
  std::uint32_t operation = kNoSpan;  ///< issued next; kNoSpan at the very end
  std::uint32_t position = 0;         ///< operations of the program passed
};
MemoryMoment highest_memory(const Plan& plan, int class_index, int section);

}  // namespace lockstep
