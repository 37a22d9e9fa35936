// TimelinePath: the critical path of the step that a timeline shows, while it is switched on: which
// boxes lie on it, how it goes from row to row, and what it consists of.
#pragma once

#include <optional>
#include <vector>

#include "visualizer/models/path_summary.h"
#include "visualizer/models/timeline_lanes.h"
#include "visualizer/views/lanes_pane.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class TimelinePath {
 public:
  /// Another step.
  void forget() { summary_.reset(); }
  bool is_on() const { return on_; }
  void set_on(bool on) { on_ = on; }

  /// Makes what is missing while it is on. Shows tracks of the path that had no rows; true when
  /// there were such.
  bool use(view::TimelineLanes& lanes, const std::vector<PathSegment>& path);
  void add_to(LanesOverlay& overlay) const;
  /// Of the path: "compute 61.2 %, communication dp 20.1 %".
  std::string short_text() const;
  /// A table into the current region.
  void draw() const;

 private:
  void mark(const view::TimelineLanes& lanes);

  bool on_ = false;
  std::optional<view::PathSummary> summary_;
  std::size_t rows_ = 0;  ///< of the lanes when marks were made
  view::LaneMarks marks_;
  std::vector<LanesArrow> chain_;
};

}  // namespace lockstep::views
