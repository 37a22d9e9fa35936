#include "executor/stream_queue.h"

#include "executor/short_slice.h"

namespace lockstep::exec {

StreamQueue::~StreamQueue() {
  if (worker_.joinable()) {
    stopping_.store(true);
    pushed_waker_.notify();
    worker_.join();
  }
}

void StreamQueue::push(const Task& task) {
  const std::uint64_t position = pushed();
  if (position >= kCapacity) {
    wait(position - kCapacity + 1);
  }
  ring_[position % kCapacity] = task;
  pushed_.store(position + 1);
  pushed_waker_.notify();
  if (!worker_.joinable()) {
    worker_ = std::thread([this] { work(); });
  }
}

void StreamQueue::work() noexcept {
  ask_for_short_slices();
  for (std::uint64_t position = 0;; ++position) {
    pushed_waker_.wait([&] { return pushed_.load() > position || stopping_.load(); });
    if (stopping_.load()) {
      return;
    }
    run_(context_, ring_[position % kCapacity]);
    done_.store(position + 1);
    done_waker_.notify();
  }
}

}  // namespace lockstep::exec
