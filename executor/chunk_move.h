// ChunkMove: one piece of data that went from one member of a group to another during a collective;
// what the all-reduce stepper draws. Recorded by the member that moved it.
#pragma once

#include <cstdint>

#include "core/trace.h"
#include "executor/communicator.h"

namespace lockstep::exec {

struct ChunkMove {
  TransferLabel label;         ///< the operation
  std::uint64_t sequence = 0;  ///< which collective of the communicator
  std::int32_t step = 0;       ///< of the algorithm
  std::int32_t src = 0;        ///< index in the group
  std::int32_t dst = 0;
  std::int32_t chunk = 0;
  std::int64_t bytes = 0;
  Nanoseconds t0 = 0;  ///< CLOCK_MONOTONIC
  Nanoseconds t1 = 0;
};

}  // namespace lockstep::exec
