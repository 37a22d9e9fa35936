// What all exports of a trace share: which lane an operation is drawn on, what it is called there,
// and times that keep the promise of every viewer that slices of a lane do not overlap, whatever a
// recorded clock says.
//
// Lanes are the streams, then receives from earlier and from later pipeline stages, which wait
// beside one another and beside what the rank sends.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan.h"
#include "core/trace.h"
#include "core/trace_index.h"

namespace lockstep {

inline constexpr int kExportLanes = kStreamCount + 2;
using ExportLanes = std::array<bool, kExportLanes>;

/// Of an operation of a rank of pipeline stage `stage`.
int export_lane(const Operation& op, int stage);
std::string export_lane_name(int lane);
/// Those that a rank uses in any step of the trace.
ExportLanes export_lanes(const Plan& plan, const Trace& trace, int rank);

/// Printable ASCII: what it does, and where in the model; micro-batch and phase are arguments, so
/// that viewers can add up slices of one name.
std::string export_name(const Plan& plan, int class_index, const Operation& op);

struct ExportSpan {
  std::uint32_t operation = 0;
  int lane = 0;
  Nanoseconds issued = 0;   ///< at most `arrived`
  Nanoseconds arrived = 0;  ///< not before the span before it on the lane has ended
  Nanoseconds started = 0;
  Nanoseconds ended = 0;
};

/// In program order.
std::vector<ExportSpan> export_spans(const TraceIndex& index, int rank);

/// Ascending; without a wish the first rank of every track of the first step. BadInputError for a
/// trace that is empty or does not fit the plan, UsageError for a rank that does not exist.
std::vector<int> export_ranks(const Plan& plan, const Trace& trace, std::vector<int> wanted);

/// Nanoseconds as microseconds: "12.345".
std::string microseconds_text(Nanoseconds time);

}  // namespace lockstep
