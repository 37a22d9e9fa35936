// StreamQueue: an in-order queue of tasks with a worker thread, which starts with the first task.
//
// A ring of fixed size: pushing never touches the heap and blocks while the ring is full. One
// thread pushes, any thread waits. `run` decides what happens to a task (a failed device passes it
// over); it must not throw.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "executor/task.h"
#include "executor/waker.h"

namespace lockstep::exec {

class StreamQueue {
 public:
  static constexpr std::uint64_t kCapacity = 1024;

  /// `run(context, task)` is called on the worker for each task in order.
  using Run = void (*)(void* context, const Task& task) noexcept;
  StreamQueue(Run run, void* context) : run_(run), context_(context) {}
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;
  /// Ends after the task that is running; tasks behind it are dropped.
  ~StreamQueue();

  void push(const Task& task);
  std::uint64_t pushed() const { return pushed_.load(std::memory_order_relaxed); }
  bool reached(std::uint64_t position) const { return done_.load() >= position; }
  void wait(std::uint64_t position) {
    done_waker_.wait([this, position] { return reached(position); });
  }

 private:
  void work() noexcept;

  Run run_;
  void* context_;
  std::array<Task, kCapacity> ring_;
  alignas(64) std::atomic<std::uint64_t> pushed_{0};
  std::atomic<bool> stopping_{false};
  Waker pushed_waker_;
  alignas(64) std::atomic<std::uint64_t> done_{0};
  Waker done_waker_;
  std::thread worker_;
};

}  // namespace lockstep::exec
