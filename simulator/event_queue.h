// EventQueue: what happens next. Events leave in the order (time, order of pushing), so equal times
// never depend on addresses or hashes. A 4-ary heap: half the levels of a binary one, and the four
// children share a cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/trace.h"

namespace lockstep::sim {

/// `Payload`: a small value that says what happens.
template <typename Payload>
class EventQueue {
 public:
  struct Event {
    Nanoseconds time = 0;
    std::uint64_t sequence = 0;
    Payload payload{};
  };

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  std::uint64_t pushed() const { return sequence_; }
  const Event& next() const { return heap_.front(); }

  void push(Nanoseconds time, const Payload& payload) {
    const Event event{time, sequence_++, payload};
    std::size_t hole = heap_.size();
    heap_.push_back(event);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kArity;
      if (!before(event, heap_[parent])) {
        break;
      }
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) {
      sink(last);
    }
    return first;
  }

 private:
  static constexpr std::size_t kArity = 4;

  static bool before(const Event& a, const Event& b) {
    return a.time != b.time ? a.time < b.time : a.sequence < b.sequence;
  }

  /// Puts `event` where the root was taken away.
  void sink(const Event& event) {
    const std::size_t size = heap_.size();
    std::size_t hole = 0;
    for (std::size_t child = 1; child < size; child = hole * kArity + 1) {
      std::size_t best = child;
      const std::size_t end = child + kArity < size ? child + kArity : size;
      for (std::size_t other = child + 1; other < end; ++other) {
        best = before(heap_[other], heap_[best]) ? other : best;
      }
      if (!before(heap_[best], event)) {
        break;
      }
      heap_[hole] = heap_[best];
      hole = best;
    }
    heap_[hole] = event;
  }

  std::vector<Event> heap_;
  std::uint64_t sequence_ = 0;
};

}  // namespace lockstep::sim
