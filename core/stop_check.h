// StopCheck: what long work calls every few milliseconds, so that whoever asked for it can end it:
// the caller's function throws InterruptedError, and the work unwinds like on any other error.
//
//     PacedStopCheck stop(options.stop_check);
//     while (more()) {
//       stop.one();
//       ...
//     }
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace lockstep {

/// Empty: nobody ends it.
using StopCheck = std::function<void()>;

inline void check_stop(const StopCheck& stop_check) {
  if (stop_check) {
    stop_check();
  }
}

/// Calls a stop check once for many small pieces of work: a look at a clock costs more than one.
class PacedStopCheck {
 public:
  explicit PacedStopCheck(StopCheck stop_check) : stop_check_(std::move(stop_check)) {}
  void one() {
    if ((++count_ & kMask) == 0) {
      check_stop(stop_check_);
    }
  }

 private:
  static constexpr std::uint32_t kMask = (1U << 14) - 1;

  StopCheck stop_check_;
  std::uint32_t count_ = 0;
};

}  // namespace lockstep
