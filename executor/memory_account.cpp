#include "executor/memory_account.h"

#include <algorithm>

#include <fmt/format.h>

namespace lockstep::exec {

void MemoryAccount::change(Category category, Storage storage, std::int64_t bytes) {
  const auto raise = [](std::int64_t& peak, std::int64_t now) { peak = std::max(peak, now); };
  raise(peak_[index(category)], current_[index(category)] += bytes);
  raise(storage_peak_[index(storage)], by_storage_[index(storage)] += bytes);
  raise(total_peak_, total_ += bytes);
}

void MemoryAccount::add(Category category, Storage storage, std::int64_t bytes) {
  events_.push_back({category, storage, false, bytes});
  change(category, storage, bytes);
}

void MemoryAccount::remove(Category category, Storage storage, std::int64_t bytes) {
  events_.push_back({category, storage, true, bytes});
  change(category, storage, -bytes);
}

void MemoryAccount::reset_peaks() {
  peak_ = current_;
  storage_peak_ = by_storage_;
  total_peak_ = total_;
}

std::string MemoryAccount::text() const {
  std::string text;
  for (int i = 0; i < kCategoryCount; ++i) {
    const auto category = static_cast<Category>(i);
    if (current(category) != 0) {
      constexpr double kMebibyte = 1024.0 * 1024.0;
      text += fmt::format("{}{} {:.1f} MiB",
                          text.empty() ? "" : ", ",
                          name_of(category),
                          static_cast<double>(current(category)) / kMebibyte);
    }
  }
  return text.empty() ? "nothing is lent" : text;
}

}  // namespace lockstep::exec
