// TimelineLanes: a plan's timeline as lanes: boxes are operations, named as plans name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "visualizer/models/lanes.h"
#include "visualizer/models/timeline.h"

namespace lockstep::view {

class TimelineLanes : public Lanes {
 public:
  /// Plan and step must outlive it. Errors as Timeline's.
  TimelineLanes(const Plan& plan, const TraceStep& step, const std::vector<int>& ranks);

  const Timeline& timeline() const { return timeline_; }
  const TraceIndex& index() const { return timeline_.index(); }

  /// Adds the track's rows where they are missing.
  void show_track(std::int32_t track);
  /// The row of the operation's stream; nothing where its track is not shown.
  std::optional<std::size_t> row_of(const TrackOperation& at) const;
  TrackOperation operation_at(std::size_t row, std::uint32_t item) const {
    return {track_of(row), item};
  }
  /// Few words: "all_gather dp h.3 #1".
  std::string name(const TrackOperation& at) const;

  const std::vector<LaneRow>& rows() const override { return rows_; }
  TimeWindow whole() const override { return timeline_.whole(); }
  std::vector<LaneBox> boxes(std::size_t row,
                             const TimeWindow& window,
                             Nanoseconds narrowest) const override;
  std::string label(std::size_t row, const LaneBox& box) const override;
  std::uint64_t name_key(std::size_t row, std::uint32_t item) const override;
  DetailLines details(std::size_t row, const LaneBox& box) const override;
  LaneBox find(std::size_t row, std::uint32_t item) const override;

 private:
  void name_rows();
  std::int32_t track_of(std::size_t row) const;
  const Operation& operation(std::size_t row, std::uint32_t item) const;

  Timeline timeline_;
  std::vector<LaneRow> rows_;
};

}  // namespace lockstep::view
