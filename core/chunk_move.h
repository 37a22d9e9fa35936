// ChunkMove: one piece of data that went from one member of a group to another during a collective;
// what the stepper of collectives draws. Recorded by the communicator that moved it, while it
// moved: never worked out from the algorithm. What a whole collective left:
// core/collective_record.h.
#pragma once

#include <cstdint>

#include "core/trace.h"

namespace lockstep {

/// Where in the plan a transfer comes from: for messages, and held against the other members'.
/// Indices are compared only between members of one class, since classes have their own programs.
struct TransferLabel {
  std::int32_t section = -1;
  std::int32_t class_index = -1;
  std::int64_t index = -1;
};

struct ChunkMove {
  TransferLabel label = {};    ///< the operation
  std::uint64_t sequence = 0;  ///< which collective of the communicator
  std::int32_t step = 0;       ///< of the algorithm
  std::int32_t src = 0;        ///< index in the group
  std::int32_t dst = 0;
  std::int32_t chunk = 0;  ///< the algorithm's number of it
  /// Its first byte in the whole message: of all shards where members hold one each.
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  bool reduces = false;  ///< added to what dst had; otherwise it replaced that
  Nanoseconds t0 = 0;    ///< CLOCK_MONOTONIC
  Nanoseconds t1 = 0;
};

}  // namespace lockstep
