// CriticalPath: the chain of operations that made the step as long as it was, through all ranks.
//
// Walked backwards from the operation that ended last: before a computation comes what it waited
// for last on its rank; before a collective or message comes the rank that arrived at it last, and
// what that one waited for. The segments tile the step: shortening anything else does not shorten
// it (until something else becomes critical).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/trace_index.h"

namespace lockstep {

enum class PathCause : std::uint8_t {
  kCompute,
  kRecompute,
  kCommunication,  ///< transfer: everybody is there
  kHost,           ///< issuing, or host work
  kUnexplained,    ///< nothing in the plan says why it took so long
};
std::string_view name_of(PathCause cause);

struct PathSegment {
  std::int32_t track = 0;
  std::uint32_t operation = kNoSpan;  ///< that ran, or that the host was issuing
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  PathCause cause = PathCause::kCompute;
  std::uint8_t communicator = kNoCommunicator;
};

/// In order of time.
std::vector<PathSegment> critical_path(const TraceIndex& index);

}  // namespace lockstep
