// Throttle: makes the links between ranks of one process as slow as a lesson or a test wants.
//
// A link is an ordered pair of ranks. Moves over one link follow each other; each takes `latency`
// and then its bytes at `bytes_per_second`. Whoever moves the data sleeps until the move's end, so
// a collective takes at least the time that its real moves need.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "executor/waker.h"

namespace lockstep::exec {

struct LinkLimit {
  double bytes_per_second = 0;  ///< 0 = as fast as memory is
  std::chrono::nanoseconds latency{0};

  bool is_set() const { return bytes_per_second > 0 || latency.count() > 0; }
};

class Throttle {
 public:
  Throttle(int ranks, const LinkLimit& limit)
      : limit_(limit),
        ranks_(static_cast<std::size_t>(ranks)),
        free_at_(limit.is_set() ? ranks_ * ranks_ : 0) {}

  bool is_set() const { return limit_.is_set(); }
  /// Takes the link for `bytes` that began to move at `begin`; returns when they have arrived.
  Clock::time_point reserve(int src, int dst, std::int64_t bytes, Clock::time_point begin);

 private:
  LinkLimit limit_;
  std::size_t ranks_;
  std::mutex mutex_;
  std::vector<Clock::time_point> free_at_;  // (src, dst)
};

}  // namespace lockstep::exec
