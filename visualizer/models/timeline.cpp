#include "visualizer/models/timeline.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace lockstep::view {
namespace {

constexpr std::int32_t kNotMade = -1;
constexpr std::int32_t kEmpty = -2;

using PaintTimes = std::array<Nanoseconds, kPaintCount>;

Paint most_of(const PaintTimes& times) {
  return static_cast<Paint>(std::max_element(times.begin(), times.end()) - times.begin());
}

}  // namespace

bool is_message(const Operation& op) {
  return op.kind == OperationKind::kCollective || op.kind == OperationKind::kSend ||
         op.kind == OperationKind::kRecv;
}

Paint paint_of(const Operation& op) {
  if (is_message(op)) {
    return Paint::kTransfer;
  }
  if (op.kind == OperationKind::kHost) {
    return Paint::kHost;
  }
  if (op.kind == OperationKind::kCopy || op.work == Work::kPack || op.work == Work::kUnpack) {
    return Paint::kOther;
  }
  switch (op.phase) {
    case Phase::kForward:
    case Phase::kEvaluate:
      return Paint::kForward;
    case Phase::kBackward:
    case Phase::kBackwardInput:
      return Paint::kBackward;
    case Phase::kBackwardWeight:
      return Paint::kBackwardWeight;
    case Phase::kRecompute:
      return Paint::kRecompute;
    case Phase::kOptimizer:
      return Paint::kOptimizer;
    default:
      return Paint::kOther;
  }
}

namespace {

template <typename Lane>
void sort_by_begin(Lane& lane) {
  std::stable_sort(
      lane.begin(), lane.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
}

/// Cut so that pieces follow one another; empty ones are dropped.
template <typename Lane>
Lane without_overlap(Lane lane, Nanoseconds end) {
  sort_by_begin(lane);
  Lane result;
  Nanoseconds cursor = 0;
  for (auto piece : lane) {
    piece.begin = std::clamp(piece.begin, std::min(cursor, end), end);
    piece.end = std::clamp(piece.end, piece.begin, end);
    if (piece.end > piece.begin) {
      result.push_back(piece);
      cursor = piece.end;
    }
  }
  return result;
}

/// `lane` with what of `others` fits into its gaps.
template <typename Lane>
Lane filled(Lane lane, Lane others) {
  Lane fillings;
  for (const auto& other : others) {
    auto next = std::upper_bound(
        lane.begin(), lane.end(), other.begin, [](Nanoseconds time, const auto& piece) {
          return time < piece.end;
        });
    Nanoseconds cursor = other.begin;
    for (; cursor < other.end; ++next) {
      auto part = other;
      part.begin = cursor;
      part.end = next == lane.end() ? other.end : std::min(other.end, next->begin);
      if (part.end > part.begin) {
        fillings.push_back(part);
      }
      if (next == lane.end()) {
        break;
      }
      cursor = std::max(cursor, next->end);
    }
  }
  const Nanoseconds end = std::numeric_limits<Nanoseconds>::max();
  const Lane gaps = without_overlap(std::move(fillings), end);
  lane.insert(lane.end(), gaps.begin(), gaps.end());
  sort_by_begin(lane);
  return lane;
}

}  // namespace

std::vector<int> usual_ranks(const TraceStep& step, int most) {
  std::vector<int> ranks;
  const std::size_t tracks = step.tracks.size();
  const std::size_t count = std::min(tracks, static_cast<std::size_t>(std::max(1, most)));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t track = count == 1 ? 0 : i * (tracks - 1) / (count - 1);
    ranks.push_back(step.tracks[track].ranks.front());
  }
  return ranks;
}

Timeline::Timeline(const Plan& plan, const TraceStep& step, const std::vector<int>& ranks)
    : index_(plan, step), lane_numbers_(step.tracks.size() * kStreamCount, kNotMade) {
  for (const int rank : ranks) {
    add_rank(rank);
  }
}

void Timeline::add_rank(int rank) {
  const int ranks = index_.plan().mesh.world_size();
  if (rank < 0 || rank >= ranks) {
    throw UsageError("timeline", fmt::format("rank {}: there are {}, from 0", rank, ranks));
  }
  const std::int32_t track = index_.step().track_of_rank[static_cast<std::size_t>(rank)];
  for (std::size_t stream = 0; stream < kStreamCount; ++stream) {
    std::int32_t& number = lane_numbers_[static_cast<std::size_t>(track) * kStreamCount + stream];
    if (number == kNotMade) {
      Lane lane = make_lane(track, static_cast<Stream>(stream));
      const bool empty = lane.pieces.empty();
      number = empty ? kEmpty : static_cast<std::int32_t>(lanes_.size());
      if (!empty) {
        lanes_.push_back(std::move(lane));
      }
    }
    if (number != kEmpty) {
      rows_.push_back({rank, static_cast<Stream>(stream), number});
    }
  }
}

/// Messages of one stream pass one another when they go to different ranks or ways: what transfers
/// is drawn before what waits, and earlier operations before later ones.
Timeline::Lane Timeline::make_lane(int track, Stream stream) const {
  Pieces running;
  Pieces waiting;
  for (const std::uint32_t operation : index_.program(track).operations) {
    const Operation& op = index_.operation({track, operation});
    if (op.stream != stream) {
      continue;
    }
    const SpanTimes times = index_.times({track, operation});
    running.push_back({times.started, times.ended, operation, paint_of(op)});
    if (is_message(op)) {
      waiting.push_back({times.arrived, times.started, operation, Paint::kWaiting});
    }
  }
  Lane lane;
  lane.pieces = filled(without_overlap(std::move(running), index_.step().end), std::move(waiting));
  lane.blocks = blocks_of(lane.pieces);
  return lane;
}

std::vector<Timeline::Block> Timeline::blocks_of(const Pieces& pieces) {
  std::vector<Block> blocks((pieces.size() + kBlock - 1) / kBlock);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Nanoseconds length = pieces[i].end - pieces[i].begin;
    Block& block = blocks[i / kBlock];
    block.times[static_cast<std::size_t>(pieces[i].paint)] += length;
    block.longest = std::max(block.longest, length);
  }
  return blocks;
}

/// The box that begins with piece `at`, which moves behind it.
TimelineBox Timeline::folded(const Lane& lane, std::size_t& at, Nanoseconds narrowest) {
  const Pieces& pieces = lane.pieces;
  const Piece& first = pieces[at];
  TimelineBox box{first.begin, first.end, 0, first.paint, first.operation, 1};
  PaintTimes times{};
  times[static_cast<std::size_t>(first.paint)] = first.end - first.begin;
  const std::size_t begin = at++;
  const Nanoseconds limit = first.begin + narrowest;
  const auto joins = [&](std::size_t i) {
    return pieces[i].begin < limit && pieces[i].end - pieces[i].begin < narrowest;
  };
  while (first.end - first.begin < narrowest && at < pieces.size() && joins(at)) {
    const std::size_t last = at + kBlock - 1;
    const bool whole_block = at % kBlock == 0 && last < pieces.size() &&
                             pieces[last].begin < limit &&
                             lane.blocks[at / kBlock].longest < narrowest;
    if (whole_block) {
      for (std::size_t paint = 0; paint < times.size(); ++paint) {
        times[paint] += lane.blocks[at / kBlock].times[paint];
      }
      at += kBlock;
    } else {
      times[static_cast<std::size_t>(pieces[at].paint)] += pieces[at].end - pieces[at].begin;
      ++at;
    }
  }
  box.spans = static_cast<std::uint32_t>(at - begin);
  box.end = pieces[at - 1].end;
  box.operation = box.spans > 1 ? kNoSpan : first.operation;
  box.busy = std::accumulate(times.begin(), times.end(), Nanoseconds{0});
  box.paint = most_of(times);
  return box;
}

std::vector<TimelineBox> Timeline::boxes(const TimelineRow& row,
                                         const TimeWindow& window,
                                         Nanoseconds narrowest) const {
  const Lane& lane = lane_of(row);
  std::vector<TimelineBox> boxes;
  const auto first =
      std::partition_point(lane.pieces.begin(), lane.pieces.end(), [&](const Piece& piece) {
        return piece.end <= window.from;
      });
  auto at = static_cast<std::size_t>(first - lane.pieces.begin());
  while (at < lane.pieces.size() && lane.pieces[at].begin < window.to) {
    boxes.push_back(folded(lane, at, narrowest));
  }
  return boxes;
}

std::vector<TimelineCell> Timeline::cells(const TimelineRow& row,
                                          const TimeWindow& window,
                                          int count) const {
  const Pieces& lane = lane_of(row).pieces;
  std::vector<TimelineCell> cells(static_cast<std::size_t>(count));
  const auto border = [&](int cell) { return window.from + window.length() * cell / count; };
  std::size_t at = 0;
  for (int cell = 0; cell < count; ++cell) {
    // Deep in, several cells share a nanosecond.
    const TimeWindow here{border(cell), std::max(border(cell + 1), border(cell) + 1)};
    PaintTimes times{};
    std::array<std::pair<Nanoseconds, std::uint32_t>, kPaintCount> longest{};
    while (at < lane.size() && lane[at].end <= here.from) {
      ++at;
    }
    for (std::size_t i = at; i < lane.size() && lane[i].begin < here.to; ++i) {
      const auto paint = static_cast<std::size_t>(lane[i].paint);
      const Nanoseconds part = std::min(lane[i].end, here.to) - std::max(lane[i].begin, here.from);
      times[paint] += part;
      longest[paint] = std::max(longest[paint], {part, lane[i].operation});
    }
    TimelineCell& it = cells[static_cast<std::size_t>(cell)];
    Nanoseconds busy = 0;
    for (const Nanoseconds time : times) {
      busy += time;
    }
    if (busy > 0) {
      const auto paint = static_cast<std::size_t>(most_of(times));
      it.paint = static_cast<Paint>(paint);
      it.busy = static_cast<double>(busy) / static_cast<double>(here.length());
      const std::int32_t track = index_.step().track_of_rank[static_cast<std::size_t>(row.rank)];
      it.microbatch = index_.operation({track, longest[paint].second}).microbatch;
    }
  }
  return cells;
}

}  // namespace lockstep::view
