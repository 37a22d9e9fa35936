// LaneMarks: a set of items of lanes, so that a painter can tell them from the others, folded boxes
// too. What the critical path and a search mark.
//
//     marks.add(row, box); ...
//     marks.finish();
//     marks.holds(row, box)    // a folded box: whether one of its items is in the set
#pragma once

#include <cstddef>
#include <vector>

#include "visualizer/models/lanes.h"

namespace lockstep::view {

class LaneMarks {
 public:
  explicit LaneMarks(std::size_t rows = 0) : rows_(rows) {}

  void add(std::size_t row, const LaneBox& box);
  /// After the last add().
  void finish();

  std::size_t size() const;
  bool holds(std::size_t row, const LaneBox& box) const;

 private:
  struct Mark {
    Nanoseconds begin = 0;
    Nanoseconds end = 0;
    std::uint32_t item = kNoItem;
  };
  struct Row {
    std::vector<Mark> marks;           ///< by begin; one after the other
    std::vector<std::uint32_t> items;  ///< ascending
  };
  std::vector<Row> rows_;
};

}  // namespace lockstep::view
