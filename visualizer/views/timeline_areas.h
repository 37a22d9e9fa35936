// TimelineAreas: where the time went inside a span of time, as a table: of a plan's ranks by the
// report's causes, of another tool's trace by what was busy.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "visualizer/models/area_split.h"
#include "visualizer/models/imported_text.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class TimelineAreas {
 public:
  /// What is indexed must outlive it, until the next use().
  void use(const TraceIndex& index);
  void use(const ImportedTrace& trace);
  void draw(const view::TimeWindow& area);

 private:
  void draw_split(const view::TimeWindow& area);
  void draw_busy(const view::TimeWindow& area);

  std::unique_ptr<view::AreaSplitter> splitter_;  ///< of a plan's
  const ImportedTrace* imported_ = nullptr;       ///< of another tool's
  std::optional<view::TimeWindow> area_;          ///< what those below are of
  std::vector<view::AreaSplit> splits_;
  std::vector<view::ImportedBusy> busy_;
};

}  // namespace lockstep::views
