#include "visualizer/models/lane_find.h"

#include <algorithm>
#include <unordered_map>

namespace lockstep::view {
namespace {

std::string in_small_letters(std::string text) {
  for (char& c : text) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

}  // namespace

LaneFind::LaneFind(const Lanes& lanes) {
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  for (std::size_t row = 0; row < lanes.rows().size(); ++row) {
    for (const LaneBox& box : lanes.boxes(row, lanes.whole(), 0)) {
      if (box.paint == Paint::kWaiting) {
        continue;  // a piece of an item that has a box of its own
      }
      const std::uint64_t key = lanes.name_key(row, box.item);
      const auto [it, is_new] = known.emplace(key, static_cast<std::uint32_t>(names_.size()));
      if (is_new) {
        names_.push_back(in_small_letters(lanes.label(row, box)));
      }
      items_.push_back({box.begin, box.end, box.item, static_cast<std::uint32_t>(row), it->second});
    }
  }
  std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.row < b.row;
  });
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
