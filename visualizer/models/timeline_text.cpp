#include "visualizer/models/timeline_text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "core/memory_timeline.h"
#include "core/report_text.h"
#include "visualizer/models/path_summary.h"
#include "visualizer/models/plan_names.h"

namespace lockstep::view {
namespace {

constexpr int kUsualRanks = 16;
constexpr char kNothing = '.';

struct Look {
  char most;  ///< at least half of the cell
  char some;
  const char* colour;  ///< ANSI SGR
};

/// By Paint.
constexpr Look kLooks[kPaintCount] = {{'F', 'f', "34"},
                                      {'B', 'b', "32"},
                                      {'W', 'w', "36"},
                                      {'R', 'r', "35"},
                                      {'O', 'o', "33"},
                                      {'X', 'x', "90"},
                                      {'=', '-', "31"},
                                      {'~', '~', "91"},
                                      {'H', 'h', "37"},
                                      {'K', 'k', "94"}};

const Look& look_of(Paint paint) {
  return kLooks[static_cast<std::size_t>(paint)];
}

/// One rank's picture and those of others, below one axis.
class Picture {
 public:
  Picture(const Timeline& timeline, const TimelineTextOptions& options)
      : timeline_(timeline), options_(options), window_(options.window.value_or(timeline.whole())) {
    for (const TimelineRow& row : timeline.rows()) {
      rank_width_ = std::max(rank_width_, name_of_rank(row.rank).size() + 1);
      stream_width_ = std::max(stream_width_, name_of(row.stream).size());
    }
    if (options.memory) {
      stream_width_ = std::max(stream_width_, std::string_view("memory").size());
    }
    const auto label = static_cast<int>(rank_width_ + stream_width_) + 1;
    columns_ = std::max(options.width, kNarrowestText) - label;
    columns_ = std::max(columns_, kNarrowestText / 4);
  }

  std::string draw() {
    text_ = axis();
    const std::vector<TimelineRow>& rows = timeline_.rows();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool first = i == 0 || rows[i].rank != rows[i - 1].rank;
      const bool last = i + 1 == rows.size() || rows[i + 1].rank != rows[i].rank;
      label(first ? name_of_rank(rows[i].rank) : "", name_of(rows[i].stream));
      text_ += row_text(rows[i]) + "\n";
      if (last && options_.memory) {
        label("", "memory");
        text_ += memory_text(rows[i].rank) + "\n";
      }
    }
    return text_ + legend();
  }

 private:
  /// Those that were asked for stand for themselves.
  std::string name_of_rank(int rank) const {
    return options_.ranks.empty() ? ranks_text(timeline_.index().step(), rank)
                                  : fmt::format("rank {}", rank);
  }

  void label(const std::string& rank, std::string_view stream) {
    text_ += fmt::format("{:<{}}{:<{}} ", rank, rank_width_, stream, stream_width_);
  }

  std::string axis() const {
    return std::string(rank_width_ + stream_width_ + 1, ' ') +
           axis_text(window_, columns_, options_.utf8) + "\n";
  }

  std::string row_text(const TimelineRow& row) {
    const std::vector<TimelineCell> cells = timeline_.cells(row, window_, columns_);
    std::string text;
    const char* colour = "";
    for (std::size_t i = 0; i < cells.size();) {
      std::size_t end = i + 1;
      while (end < cells.size() && same(cells[i], cells[end])) {
        ++end;
      }
      const bool busy = cells[i].busy > 0;
      const char* wanted = options_.colour && busy ? look_of(cells[i].paint).colour : "";
      if (std::string_view(wanted) != colour) {
        text += *wanted == '\0' ? "\x1b[0m" : fmt::format("\x1b[{}m", wanted);
        colour = wanted;
      }
      text += run_text(cells, i, end);
      i = end;
    }
    return *colour == '\0' ? text : text + "\x1b[0m";
  }

  static bool same(const TimelineCell& a, const TimelineCell& b) {
    return (a.busy > 0) == (b.busy > 0) &&
           (a.busy == 0 || (a.paint == b.paint && a.microbatch == b.microbatch));
  }

  /// Cells of one kind and micro-batch; its number follows the first letter where it fits.
  std::string run_text(const std::vector<TimelineCell>& cells, std::size_t begin, std::size_t end) {
    std::string text;
    for (std::size_t i = begin; i < end; ++i) {
      const TimelineCell& cell = cells[i];
      if (cell.busy > 0) {
        used_[static_cast<std::size_t>(cell.paint)] = true;
      }
      const Look& look = look_of(cell.paint);
      text += cell.busy == 0 ? kNothing : cell.busy >= 0.5 ? look.most : look.some;
    }
    const TimelineCell& first = cells[begin];
    const bool numbered = first.busy > 0 && first.microbatch >= 0 && is_pass(first.paint);
    const std::string number = std::to_string(first.microbatch);
    if (numbered && text.size() > number.size() + 1) {
      text.replace(1, number.size(), number);
    }
    return text;
  }

  static bool is_pass(Paint paint) {
    return paint == Paint::kForward || paint == Paint::kBackward ||
           paint == Paint::kBackwardWeight || paint == Paint::kRecompute;
  }

  /// The highest count of every cell, over the rank's own peak, which is named behind it.
  std::string memory_text(int rank) {
    const TraceIndex& index = timeline_.index();
    const std::int32_t track = index.step().track_of_rank[static_cast<std::size_t>(rank)];
    const std::vector<MemorySample> samples = memory_timeline(index, track);
    std::vector<std::int64_t> high(static_cast<std::size_t>(columns_), 0);
    const auto column_of = [&](Nanoseconds time) {
      const Nanoseconds column = (time - window_.from) * columns_ / window_.length();
      return std::clamp<Nanoseconds>(column, 0, columns_ - 1);
    };
    const MemorySample* peak = &samples.front();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::int64_t bytes = total(samples[i].bytes);
      peak = bytes > total(peak->bytes) ? &samples[i] : peak;
      const Nanoseconds until = i + 1 < samples.size() ? samples[i + 1].time : index.step().end;
      if (until < window_.from || samples[i].time > window_.to) {
        continue;
      }
      for (Nanoseconds column = column_of(samples[i].time); column <= column_of(until); ++column) {
        std::int64_t& cell = high[static_cast<std::size_t>(column)];
        cell = std::max(cell, bytes);
      }
    }
    const std::string peak_text = fmt::format(
        "  peak {} at {}", bytes_text(total(peak->bytes)), time_text(peak->time, options_.utf8));
    return curve_text(high, options_.utf8) + peak_text;
  }

  std::string legend() const {
    std::string text;
    for (std::size_t i = 0; i < kPaintCount; ++i) {
      if (used_[i]) {
        text += fmt::format(
            "{}{} {}", text.empty() ? "" : "  ", kLooks[i].most, name_of(static_cast<Paint>(i)));
      }
    }
    const std::string rest =
        ". nothing; digits: micro-batch; small letters and -: less than half "
        "of the cell";
    return (text.empty() ? "" : text + "  ") + rest + "\n";
  }

  const Timeline& timeline_;
  const TimelineTextOptions& options_;
  TimeWindow window_;
  std::size_t rank_width_ = 0;
  std::size_t stream_width_ = 0;
  int columns_ = kNarrowestText;
  std::array<bool, kPaintCount> used_{};
  std::string text_;
};

}  // namespace

std::string timeline_text(const Plan& plan,
                          const TraceStep& step,
                          const TimelineTextOptions& options) {
  const Timeline timeline(
      plan, step, options.ranks.empty() ? usual_ranks(step, kUsualRanks) : options.ranks);
  const TimeWindow window = options.window.value_or(timeline.whole());
  if (window.length() <= 0) {
    return "nothing happened: the step is empty\n";
  }
  std::string text = Picture(timeline, options).draw();
  if (options.path) {
    const TraceIndex& index = timeline.index();
    text += path_text(PathSummary(index, critical_path(index)), options.utf8);
  }
  return text;
}

}  // namespace lockstep::view
