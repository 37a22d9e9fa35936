// Timeline: ranks and their streams over time, ready to be drawn: in a window as boxes, in a
// terminal as cells. Neighbouring spans that are too narrow to be seen are folded into one box, so
// that a million spans cost some thousand boxes.
//
//     const Timeline timeline(plan, step, {0, 1, 2});
//     for (const TimelineRow& row : timeline.rows())
//       draw(timeline.boxes(row, {from, to}, narrowest));
//
// Ranks with equal times share one lane. What it is not: pixels, colours or fonts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/trace_index.h"
#include "visualizer/models/lanes.h"

namespace lockstep::view {

/// Of an operation while it runs.
Paint paint_of(const Operation& op);
/// A collective, send or recv: it waits for other ranks.
bool is_message(const Operation& op);

/// A stream of a rank.
struct TimelineRow {
  std::int32_t rank = 0;
  Stream stream = Stream::kCompute;
  std::int32_t lane = 0;
};

struct TimelineBox {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  Nanoseconds busy = 0;               ///< covered by spans; less than the width where folded
  Paint paint = Paint::kForward;      ///< of folded ones: of most of the time
  std::uint32_t operation = kNoSpan;  ///< kNoSpan where folded
  std::uint32_t spans = 1;
};

/// One column of a row.
struct TimelineCell {
  Paint paint = Paint::kForward;
  double busy = 0;  ///< fraction of the cell that any span covers, 0 to 1
  std::int32_t microbatch = -1;
};

/// Ranks that are interesting when nobody says which: the first of every track, at most `most`,
/// spread over all tracks.
std::vector<int> usual_ranks(const TraceStep& step, int most);

class Timeline {
 public:
  /// BadInputError when the trace does not fit the plan, UsageError for a rank that does not exist.
  Timeline(const Plan& plan, const TraceStep& step, const std::vector<int>& ranks);

  const TraceIndex& index() const { return index_; }
  /// By rank in the given order, then by stream; streams on which nothing ever runs are left out.
  const std::vector<TimelineRow>& rows() const { return rows_; }
  TimeWindow whole() const { return {index_.step().begin, index_.step().end}; }
  /// Adds a rank's rows behind the others.
  void add_rank(int rank);

  /// In order, without overlap. Spans narrower than `narrowest` are folded with their neighbours
  /// into boxes at least so wide, unless they stand alone.
  std::vector<TimelineBox> boxes(const TimelineRow& row,
                                 const TimeWindow& window,
                                 Nanoseconds narrowest) const;
  /// `count` columns of equal width.
  std::vector<TimelineCell> cells(const TimelineRow& row,
                                  const TimeWindow& window,
                                  int count) const;

 private:
  struct Piece {
    Nanoseconds begin = 0;
    Nanoseconds end = 0;
    std::uint32_t operation = kNoSpan;
    Paint paint = Paint::kForward;
  };
  /// Ascending, without overlap.
  using Pieces = std::vector<Piece>;
  /// So many neighbours in sum, so that folding costs boxes, not spans.
  struct Block {
    std::array<Nanoseconds, kPaintCount> times{};
    Nanoseconds longest = 0;
  };
  struct Lane {
    Pieces pieces;
    std::vector<Block> blocks;
  };
  static constexpr std::size_t kBlock = 64;

  Lane make_lane(int track, Stream stream) const;
  static std::vector<Block> blocks_of(const Pieces& pieces);
  static TimelineBox folded(const Lane& lane, std::size_t& at, Nanoseconds narrowest);
  const Lane& lane_of(const TimelineRow& row) const {
    return lanes_[static_cast<std::size_t>(row.lane)];
  }

  TraceIndex index_;
  std::vector<TimelineRow> rows_;
  std::vector<Lane> lanes_;
  std::vector<std::int32_t> lane_numbers_;  ///< by track and stream: index into lanes_, -1, or -2
};

}  // namespace lockstep::view
