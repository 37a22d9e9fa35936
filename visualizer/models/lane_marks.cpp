#include "visualizer/models/lane_marks.h"

#include <algorithm>

namespace lockstep::view {

void LaneMarks::add(std::size_t row, const LaneBox& box) {
  rows_.resize(std::max(rows_.size(), row + 1));
  rows_[row].marks.push_back({box.begin, box.end, box.item});
  rows_[row].items.push_back(box.item);
}

void LaneMarks::finish() {
  const auto by_begin = [](const Mark& a, const Mark& b) { return a.begin < b.begin; };
  for (Row& row : rows_) {
    if (!std::is_sorted(row.marks.begin(), row.marks.end(), by_begin)) {
      std::sort(row.marks.begin(), row.marks.end(), by_begin);
    }
    if (!std::is_sorted(row.items.begin(), row.items.end())) {
      std::sort(row.items.begin(), row.items.end());
    }
    row.items.erase(std::unique(row.items.begin(), row.items.end()), row.items.end());
  }
}

std::size_t LaneMarks::size() const {
  std::size_t count = 0;
  for (const Row& row : rows_) {
    count += row.items.size();
  }
  return count;
}

bool LaneMarks::holds(std::size_t row, const LaneBox& box) const {
  if (row >= rows_.size()) {
    return false;
  }
  const Row& it = rows_[row];
  if (box.item != kNoItem) {
    return std::binary_search(it.items.begin(), it.items.end(), box.item);
  }
  const auto next = std::partition_point(
      it.marks.begin(), it.marks.end(), [&](const Mark& mark) { return mark.begin < box.begin; });
  // Marks of one row follow one another, but for messages that pass each other: those may be missed
  // only where another one is found.
  return (next != it.marks.end() && next->begin < box.end) ||
         (next != it.marks.begin() && (next - 1)->end > box.begin);
}

}  // namespace lockstep::view
