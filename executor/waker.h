// Waker: where threads sleep until something that other threads count has come far enough.
//
// The counts are atomics of whoever owns the Waker; the Waker only puts threads to sleep and wakes
// them (an event count: D. Vyukov's "eventcount", the wait side registers itself before it looks
// again). A wait looks a few times, for about 300 ns, offers its core to whoever wants it a few
// times, and then sleeps in the kernel, so that eight ranks on two cores make progress. (Being
// woken costs 5 us and more: without the offers two ranks on a busy machine need twice as long for
// a small all-reduce.) Linux only: it is a futex. Not a condition variable, because its wait with a
// deadline is one system call and ThreadSanitizer follows the atomics.
//
//     done_.store(5);  waker_.notify();                          // one side
//     waker_.wait([&] { return done_.load() >= 5; }, deadline)   // the other; false: too late
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace lockstep::exec {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();

class Waker {
 public:
  /// Call after a change that may end somebody's wait; the change must be sequentially consistent.
  void notify() noexcept {
    if (waiters_.load() != 0) {
      wake_all();
    }
  }

  /// Returns true once `done()` holds, false when `deadline` has passed before.
  template <typename Done>
  bool wait(Done done, Deadline deadline = kNoDeadline) {
    for (int i = 0; i < kLooks + kOffers; ++i) {
      if (done()) {
        return true;
      }
      i < kLooks ? pause() : offer();
    }
    waiters_.fetch_add(1);
    bool in_time = true;
    bool finished = false;
    while (in_time && !finished) {
      const std::uint32_t seen = wakes_.load();
      finished = done();
      in_time = finished || sleep(seen, deadline);
    }
    waiters_.fetch_sub(1);
    return finished || done();
  }

 private:
  static constexpr int kLooks = 16;
  static constexpr int kOffers = 16;

  static void pause() noexcept;
  static void offer() noexcept;
  void wake_all() noexcept;
  /// Sleeps while no wake has come since `seen` was read; false when the deadline has passed.
  bool sleep(std::uint32_t seen, Deadline deadline) noexcept;

  std::atomic<std::uint32_t> waiters_{0};
  std::atomic<std::uint32_t> wakes_{0};
};

}  // namespace lockstep::exec
