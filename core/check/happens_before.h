// Happens-before: which operations of a program are surely done before which.
//
// Vector clocks, one entry per stream (Lamport's order with streams as processes; Mattern 1988).
// Order comes from: the stream (in order), dependencies, and kHostSync (all that is issued later).
// Not from communicators, whose queues an interpreter may serve with several streams.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/plan.h"

namespace lockstep {

class HappensBefore {
 public:
  /// `never_launched`: ascending indices of operations that do not run.
  HappensBefore(const Program& program, const std::vector<std::uint32_t>& never_launched);

  /// Whether `first` is done before `second` begins, or is the same. Neither may be an alloc.
  bool ordered(std::uint32_t first, std::uint32_t second) const {
    return clocks_[second][stream_of(first)] > first;
  }

 private:
  /// clock[s]: one more than the last operation of stream s that is done, 0 if none.
  using Clock = std::array<std::uint32_t, kStreamCount>;

  std::size_t stream_of(std::uint32_t index) const {
    return static_cast<std::size_t>(program_.operations[index].stream);
  }
  static void join(Clock& clock, const Clock& other) {
    for (std::size_t s = 0; s < kStreamCount; ++s) {
      clock[s] = std::max(clock[s], other[s]);
    }
  }

  const Program& program_;
  std::vector<Clock> clocks_;
};

}  // namespace lockstep
