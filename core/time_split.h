// TimeSplit: what a rank's compute stream did in every nanosecond of a step. Each instant belongs
// to exactly one kind, and the kinds add up to the step.
//
// While an operation runs on the compute stream, the instant is `recompute` or `compute` by its
// phase. A gap before operation X is walked back from X's start along what X waited for last
// (TraceIndex::binding), until the gap is filled:
//   the host issued X last      [end of the last operation that the host waited for, issue) is
//                               `host`; then on with that operation
//   a communication D of group g  [started, ended) is `exposed(g)`; [arrived, started) is
//                               `waiting(g)`, or `bubble` when D is a send, a recv, or a collective
//                               over the pipeline axis; then on with what D waited for
//   compute on another stream   (copies in and out of communication buffers) is `exposed` of the
//                               group that it serves
//   a host operation            is `host`
//   nothing that the plan names `idle`
// The end of the rank is walked back from the operation that ended last; from there to the end of
// the step is `bubble` with a pipeline, else `idle`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/trace_index.h"

namespace lockstep {

enum class TimeKind : std::uint8_t {
  kCompute,
  kRecompute,
  kExposed,
  kWaiting,
  kBubble,
  kHost,
  kIdle,
};
std::string_view name_of(TimeKind kind);

/// Part of a step. `operation` is what ran or what was to blame; kNoSpan when nothing was.
struct TimeSegment {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  TimeKind kind = TimeKind::kIdle;
  std::uint8_t communicator = kNoCommunicator;  ///< of kExposed, kWaiting, and kBubble
  std::uint32_t operation = kNoSpan;
};

/// The step cut into segments, in order and without holes.
std::vector<TimeSegment> split_time(const TraceIndex& index, int track);

}  // namespace lockstep
