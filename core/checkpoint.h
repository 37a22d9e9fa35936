// Checkpoint: what long work calls every few milliseconds, so that whoever asked for it can end it:
// the caller's function throws InterruptedError, and the work unwinds like on any other error.
//
//     Paced passed(options.checkpoint);
//     while (more()) {
//       passed.one();
//       ...
//     }
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace lockstep {

/// Empty: nobody ends it.
using Checkpoint = std::function<void()>;

inline void pass_checkpoint(const Checkpoint& checkpoint) {
  if (checkpoint) {
    checkpoint();
  }
}

/// Calls a checkpoint once for many small pieces of work: a look at a clock costs more than one.
class Paced {
 public:
  explicit Paced(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {}
  void one() {
    if ((++count_ & kMask) == 0) {
      pass_checkpoint(checkpoint_);
    }
  }

 private:
  static constexpr std::uint32_t kMask = (1U << 14) - 1;

  Checkpoint checkpoint_;
  std::uint32_t count_ = 0;
};

}  // namespace lockstep
