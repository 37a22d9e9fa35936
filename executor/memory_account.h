// MemoryAccount: bytes that a Device has lent, by category and by storage, now and at most, and
// every allocation and free in order. Exact bytes as asked for; what a device keeps for reuse or
// loses to alignment is not in it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan.h"

namespace lockstep::exec {

/// One allocation (bytes >= 0) or free.
struct MemoryEvent {
  Category category = Category::kTemporary;
  Storage storage = Storage::kDevice;
  bool freed = false;
  std::int64_t bytes = 0;
  bool operator==(const MemoryEvent&) const = default;
};

class MemoryAccount {
 public:
  void add(Category category, Storage storage, std::int64_t bytes);
  void remove(Category category, Storage storage, std::int64_t bytes);

  std::int64_t current(Category category) const { return current_[index(category)]; }
  std::int64_t peak(Category category) const { return peak_[index(category)]; }
  std::int64_t current(Storage storage) const { return by_storage_[index(storage)]; }
  std::int64_t peak(Storage storage) const { return storage_peak_[index(storage)]; }
  /// All categories together; the peak of the sum, not the sum of the peaks.
  std::int64_t current() const { return total_; }
  std::int64_t peak() const { return total_peak_; }

  /// Since the last forget_events(), in order.
  std::span<const MemoryEvent> events() const { return events_; }
  void forget_events() { events_.clear(); }
  /// Peaks begin again at what is lent now.
  void reset_peaks();

  /// "parameter 1.5 MiB, activation 3.0 MiB": what is lent now, for messages.
  std::string text() const;

 private:
  template <typename Enum>
  static std::size_t index(Enum value) {
    return static_cast<std::size_t>(value);
  }
  void change(Category category, Storage storage, std::int64_t bytes);

  std::array<std::int64_t, kCategoryCount> current_{};
  std::array<std::int64_t, kCategoryCount> peak_{};
  std::array<std::int64_t, 3> by_storage_{};
  std::array<std::int64_t, 3> storage_peak_{};
  std::int64_t total_ = 0;
  std::int64_t total_peak_ = 0;
  std::vector<MemoryEvent> events_;
};

}  // namespace lockstep::exec
