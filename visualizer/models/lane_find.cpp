#include "visualizer/models/lane_find.h"

#include <algorithm>

#include <fmt/format.h>

namespace lockstep::view {
namespace {

/// As many as are read between two frames of a window.
constexpr std::size_t kItemsAtOnce = 50'000;

std::string in_small_letters(std::string text) {
  for (char& c : text) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

}  // namespace

bool LaneFind::prepare() {
  const std::size_t before = items_.size();
  while (!is_ready() && items_.size() < before + kItemsAtOnce) {
    add_row(next_row_++);
  }
  return !is_ready();
}

/// An item has several boxes where it waited in pieces: the one in which it ran counts, if any.
void LaneFind::add_row(std::size_t row) {
  const auto first = static_cast<std::ptrdiff_t>(items_.size());
  const std::vector<LaneBox> boxes = lanes_.boxes(row, lanes_.whole(), 0);
  std::vector<bool> seen;
  const auto in_order = [](const Item& a, const Item& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.row < b.row;
  };
  for (const bool waiting : {false, true}) {
    for (const LaneBox& box : boxes) {
      if ((box.paint == Paint::kWaiting) != waiting) {
        continue;
      }
      seen.resize(std::max<std::size_t>(seen.size(), std::size_t{box.item} + 1), false);
      if (!seen[box.item]) {
        seen[box.item] = true;
        add_item(row, box);
      }
    }
  }
  std::sort(items_.begin() + first, items_.end(), in_order);
  std::inplace_merge(items_.begin(), items_.begin() + first, items_.end(), in_order);
}

void LaneFind::add_item(std::size_t row, const LaneBox& box) {
  const auto next = static_cast<std::uint32_t>(names_.size());
  auto& known = name_of_key_[static_cast<std::size_t>(box.paint)];
  const auto [it, is_new] = known.emplace(lanes_.name_key(row, box.item), next);
  if (is_new) {
    names_.push_back(
        in_small_letters(fmt::format("{} {}", lanes_.label(row, box), name_of(box.paint))));
  }
  items_.push_back({box.begin, box.end, box.item, static_cast<std::uint32_t>(row), it->second});
}

void LaneFind::search(const std::string& text) {
  text_ = text;
  found_.clear();
  marks_ = LaneMarks();
  const std::string wanted = in_small_letters(text);
  std::vector<bool> matches(names_.size(), false);
  for (std::size_t i = 0; i < names_.size() && !wanted.empty(); ++i) {
    matches[i] = names_[i].find(wanted) != std::string::npos;
  }
  for (const Item& it : items_) {
    if (matches[it.name]) {
      found_.push_back({it.row, it.item, it.begin});
      marks_.add(it.row, {it.begin, it.end, it.end - it.begin, Paint::kOther, it.item, 1});
    }
  }
  marks_.finish();
}

std::optional<std::size_t> LaneFind::number_of(std::size_t row, std::uint32_t item) const {
  const auto it = std::find_if(found_.begin(), found_.end(), [&](const FoundItem& found) {
    return found.row == row && found.item == item;
  });
  return it == found_.end() ? std::nullopt
                            : std::optional(static_cast<std::size_t>(it - found_.begin()));
}

std::size_t LaneFind::first_from(Nanoseconds time) const {
  const auto it = std::partition_point(
      found_.begin(), found_.end(), [&](const FoundItem& found) { return found.begin < time; });
  return it == found_.end() ? 0 : static_cast<std::size_t>(it - found_.begin());
}

}  // namespace lockstep::view
