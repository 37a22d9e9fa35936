// Queues of a rank: what of a program runs in order. One for each stream, and one for each peer and
// direction of messages, because receives are posted early and a message of one pair of ranks may
// pass those of another. The rule by which a simulation, a real run and the readers of their traces
// tell the order of two operations; a collective also waits for the one before it on its
// communicator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/plan.h"

namespace lockstep {

/// Peers beyond that share a queue.
inline constexpr int kQueueCount = 31;

/// Whether the operation stands in a queue: all but alloc and free, which count when the host
/// passes them.
inline bool takes_place(const Operation& op) {
  return op.kind != OperationKind::kAlloc && op.kind != OperationKind::kFree;
}

/// Numbers the queues of one program; its operations must be asked for in program order.
class QueueNumbering {
 public:
  /// The stream's number, or from kStreamCount on a message queue's.
  std::uint8_t of(const Operation& op) {
    if (op.peer == kNoPeer) {
      return static_cast<std::uint8_t>(op.stream);
    }
    const std::pair<std::int16_t, bool> way{op.peer, op.kind == OperationKind::kSend};
    auto found = std::find(ways_.begin(), ways_.end(), way);
    if (found == ways_.end()) {
      found = ways_.insert(ways_.end(), way);
    }
    return static_cast<std::uint8_t>(kStreamCount +
                                     (found - ways_.begin()) % (kQueueCount - kStreamCount));
  }

 private:
  std::vector<std::pair<std::int16_t, bool>> ways_;  ///< peer and direction, by message queue
};

}  // namespace lockstep
