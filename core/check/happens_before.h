// Happens-before: which operations of a program are surely done before which.
//
// Vector clocks, one entry per queue (Lamport's order with queues as processes; Mattern 1988; what
// a queue is: core/queues.h). Order comes from: the queue, dependencies, and kHostSync (all that is
// issued later). Not from communicators, whose transfers an interpreter may serve as they come, nor
// from alloc and free, which count when the host passes them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/plan.h"
#include "core/queues.h"

namespace lockstep {

class HappensBefore {
 public:
  /// `never_launched`: ascending indices of operations that do not run.
  HappensBefore(const Program& program, const std::vector<std::uint32_t>& never_launched);

  /// Whether `first` is done before `second` begins, or is the same. Neither may be an alloc or a
  /// free.
  bool ordered(std::uint32_t first, std::uint32_t second) const {
    return clocks_[second][queue_[first]] > first;
  }
  std::uint8_t queue(std::uint32_t index) const { return queue_[index]; }

 private:
  /// clock[q]: one more than the last operation of queue q that is done, 0 if none.
  using Clock = std::array<std::uint32_t, kQueueCount>;

  static void join(Clock& clock, const Clock& other) {
    for (std::size_t s = 0; s < kQueueCount; ++s) {
      clock[s] = std::max(clock[s], other[s]);
    }
  }

  std::vector<std::uint8_t> queue_;  ///< by operation
  std::vector<Clock> clocks_;
};

}  // namespace lockstep
