#include "executor/waker.h"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lockstep::exec {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4, "a futex is a 32-bit word");

void Waker::pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void Waker::offer() noexcept {
  sched_yield();
}

void Waker::wake_all() noexcept {
  wakes_.fetch_add(1);
  syscall(SYS_futex, &wakes_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

bool Waker::sleep(std::uint32_t seen, Deadline deadline) noexcept {
  timespec until{};
  timespec* limit = nullptr;
  if (deadline != kNoDeadline) {
    if (Clock::now() >= deadline) {
      return false;
    }
    // steady_clock is CLOCK_MONOTONIC, the clock of FUTEX_WAIT_BITSET's absolute time.
    const auto since = deadline.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
    until.tv_sec = seconds.count();
    until.tv_nsec = std::chrono::nanoseconds(since - seconds).count();
    limit = &until;
  }
  syscall(
      SYS_futex, &wakes_, FUTEX_WAIT_BITSET_PRIVATE, seen, limit, nullptr, FUTEX_BITSET_MATCH_ANY);
  return true;
}

}  // namespace lockstep::exec
