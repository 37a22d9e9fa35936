// LaneFind: the items of lanes whose name or kind ("backward") contains a text, in order of time.
//
//     LaneFind find(lanes);
//     while (find.prepare()) {}      // in pieces, so that a window can draw between them
//     find.search("all_gather");     // letter case does not matter
//     find.next(cursor)              // which of found() comes after
//
// Names are made once for each distinct one, so a million items are searched in some milliseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "visualizer/models/lane_marks.h"
#include "visualizer/models/lanes.h"

namespace lockstep::view {

struct FoundItem {
  std::size_t row = 0;
  std::uint32_t item = kNoItem;
  Nanoseconds begin = 0;
};

class LaneFind {
 public:
  /// The lanes must outlive it; rows that are added later are not searched.
  explicit LaneFind(const Lanes& lanes) : lanes_(lanes) {}

  /// Reads some rows; false when there are none left.
  bool prepare();
  bool is_ready() const { return next_row_ == lanes_.rows().size(); }

  /// Once it is ready. An empty text finds nothing.
  void search(const std::string& text);

  const std::string& text() const { return text_; }
  /// By begin, then by row.
  const std::vector<FoundItem>& found() const { return found_; }
  const LaneMarks& marks() const { return marks_; }

  /// The number of this item in found().
  std::optional<std::size_t> number_of(std::size_t row, std::uint32_t item) const;
  /// The first one that begins at `time` or later, else the first of all. Needs some found.
  std::size_t first_from(Nanoseconds time) const;

 private:
  struct Item {
    Nanoseconds begin = 0;
    Nanoseconds end = 0;
    std::uint32_t item = kNoItem;
    std::uint32_t row = 0;
    std::uint32_t name = 0;  ///< index into names_
  };

  void add_row(std::size_t row);
  void add_item(std::size_t row, const LaneBox& box);

  const Lanes& lanes_;
  std::size_t next_row_ = 0;
  /// By paint and key: indices into names_.
  std::array<std::unordered_map<std::uint64_t, std::uint32_t>, kPaintCount> name_of_key_;
  std::vector<std::string> names_;  ///< small letters
  std::vector<Item> items_;         ///< by begin, then by row
  std::string text_;
  std::vector<FoundItem> found_;
  LaneMarks marks_;
};

}  // namespace lockstep::view
