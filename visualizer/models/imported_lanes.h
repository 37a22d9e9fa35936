// ImportedLanes: the trace of another tool as lanes: ranks are groups; a stream of a device or a
// thread is a row, and where its spans nest, a row for every level, the outermost on top.
//
//     const ImportedLanes lanes(trace);           // keeps what it needs to find boxes quickly
//     lanes.boxes(row, lanes.whole(), narrowest)  // cost: boxes, not spans
//
// Streams come before threads, so that kernels and messages are seen first. An item is a number
// that only one span of the whole trace has.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/imported_trace.h"
#include "visualizer/models/lanes.h"

namespace lockstep::view {

class ImportedLanes : public Lanes {
 public:
  /// The trace must outlive it.
  explicit ImportedLanes(const ImportedTrace& trace);

  const ImportedTrace& trace() const { return trace_; }
  /// Spans that nest deeper than rows are made for, or have no place beside others.
  std::size_t left_out() const { return left_out_; }
  /// Spans in all rows.
  std::size_t spans() const;

  const std::vector<LaneRow>& rows() const override { return rows_; }
  TimeWindow whole() const override { return {0, std::max<Nanoseconds>(1, trace_.end)}; }
  std::vector<LaneBox> boxes(std::size_t row,
                             const TimeWindow& window,
                             Nanoseconds narrowest) const override;
  std::string label(std::size_t row, const LaneBox& box) const override;
  std::uint64_t name_key(std::size_t row, std::uint32_t item) const override;
  DetailLines details(std::size_t row, const LaneBox& box) const override;
  LaneBox find(std::size_t row, std::uint32_t item) const override;

  /// What each paint covers of the window, exactly; by Paint.
  std::array<Nanoseconds, kPaintCount> times(std::size_t row, const TimeWindow& window) const;
  /// 0 for the outermost spans of a lane.
  int level(std::size_t row) const { return sources_[row].level; }

 private:
  /// Where a row's boxes come from.
  struct Source {
    std::size_t rank = 0;
    std::size_t lane = 0;
    int level = 0;
    std::uint32_t first_item = 0;           ///< of the lane
    std::vector<std::uint32_t> spans = {};  ///< indices into the lane's, by begin, without overlap
    std::vector<Paint> paints = {};         ///< of each
    std::vector<Paint> used = {};
    /// For every used paint: time of it before each span; one more than there are spans.
    std::vector<std::vector<Nanoseconds>> before = {};
  };
  struct FlowAt {
    std::uint32_t item = 0;
    std::uint32_t flow = 0;
  };

  void add_lane(std::size_t rank, std::size_t lane, std::uint32_t first_item);
  void add_row(Source source, int level);
  void add_flows(const std::vector<std::vector<std::uint32_t>>& first_items);
  const ImportedLane& lane_of(const Source& source) const {
    return trace_.ranks[source.rank].lanes[source.lane];
  }
  const ImportedSpan& span_at(const Source& source, std::size_t index) const {
    return lane_of(source).spans[source.spans[index]];
  }
  /// The first span of the row that begins at `time` or later, at or after `from`.
  std::size_t begins_at(const Source& source, std::size_t from, Nanoseconds time) const;
  LaneBox single(const Source& source, std::size_t index) const;
  LaneBox folded(const Source& source, std::size_t from, std::size_t to) const;
  void add_collective(DetailLines& lines, const ImportedSpan& span) const;
  void add_arrows(DetailLines& lines, std::uint32_t item) const;
  std::string place_of(const ImportedFlowEnd& end) const;

  const ImportedTrace& trace_;
  std::vector<LaneRow> rows_;
  std::vector<Source> sources_;
  std::vector<FlowAt> leaving_;   ///< by item
  std::vector<FlowAt> arriving_;  ///< by item
  std::size_t left_out_ = 0;
};

/// How a span of another tool is painted.
Paint paint_of(const ImportedTrace& trace, const ImportedSpan& span);
/// "rank 3", or the file's name.
std::string name_of(const ImportedRank& rank);

}  // namespace lockstep::view
