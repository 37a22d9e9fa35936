// TimelineCauses: why the selected operation of a timeline started when it did: what it waited for,
// what waited for it, and who came to its collective when. Computed when the selection changes.
#pragma once

#include <optional>
#include <vector>

#include "visualizer/models/arrivals.h"
#include "visualizer/models/dependencies.h"
#include "visualizer/models/timeline_lanes.h"
#include "visualizer/views/lanes_pane.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class TimelineCauses {
 public:
  void forget() { at_ = {}; }
  /// `at` with operation kNoSpan: nothing is selected. `rank` is a member of its track.
  void use(const view::TimelineLanes& lanes, const TrackOperation& at, int rank);
  /// Arrows between rows that are shown, and arrivals at a collective.
  void add_to(LanesOverlay& overlay) const;

  /// What determined the operation's start, and the first that it determined; kNoSpan for none.
  TrackOperation cause() const;
  TrackOperation effect() const;

  /// Tables into the current region. Returns the operation that was chosen, if any.
  std::optional<TrackOperation> draw(const view::TimelineLanes& lanes) const;
  view::DetailLines lines(const view::TimelineLanes& lanes) const;

  static std::vector<KeyHelp> keys();

 private:
  void find_arrows(const view::TimelineLanes& lanes);
  void find_arrivals(const view::TimelineLanes& lanes);
  void draw_arrivals(const view::TimelineLanes& lanes) const;

  TrackOperation at_;
  std::size_t rows_ = 0;  ///< of the lanes when arrows were made
  std::vector<view::Link> links_;
  std::vector<TrackOperation> effects_;
  std::optional<view::Arrivals> meeting_;
  std::vector<LanesArrow> arrows_;
  std::vector<LanesArrival> arrivals_;
};

}  // namespace lockstep::views
