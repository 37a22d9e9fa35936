#include "visualizer/models/timeline_svg.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/plan_text.h"
#include "visualizer/models/timeline_text.h"

namespace lockstep::view {
namespace {

constexpr double kLabelWidth = 170;
constexpr double kAxisHeight = 24;
constexpr double kMargin = 10;
constexpr double kLegendWidth = 128;
constexpr int kTicks = 8;

struct Look {
  std::string_view letter;
  std::string_view colour;
  Hatch hatch;
};

/// By Paint. Colours after Okabe and Ito, who chose them for all kinds of colour vision.
constexpr std::array<Look, kPaintCount> kLooks = {{{"F", "#56b4e9", Hatch::kNone},
                                                   {"B", "#009e73", Hatch::kRising},
                                                   {"W", "#8fd3b6", Hatch::kFalling},
                                                   {"R", "#cc79a7", Hatch::kUpright},
                                                   {"O", "#e69f00", Hatch::kNone},
                                                   {"X", "#bbbbbb", Hatch::kNone},
                                                   {"=", "#d55e00", Hatch::kLevel},
                                                   {"~", "#f0e442", Hatch::kDotted},
                                                   {"H", "#dddddd", Hatch::kCrossed},
                                                   {"K", "#56b4e9", Hatch::kUpright}}};

class Drawing {
 public:
  Drawing(const Timeline& timeline, const TimelineSvgOptions& options)
      : timeline_(timeline),
        options_(options),
        window_(options.window.value_or(timeline.whole())),
        svg_(options.width, height()) {}

  std::string draw() {
    draw_axis();
    for (std::size_t i = 0; i < timeline_.rows().size(); ++i) {
      draw_row(timeline_.rows()[i], top_of(i));
    }
    draw_legend();
    return svg_.text();
  }

 private:
  double height() const { return top_of(timeline_.rows().size()) + 3 * kMargin + 16; }
  double top_of(std::size_t row) const {
    return kMargin + kAxisHeight + static_cast<double>(row) * options_.row_height;
  }
  double plot_width() const { return options_.width - kLabelWidth - kMargin; }
  double x_of(Nanoseconds time) const {
    const auto length = static_cast<double>(std::max<Nanoseconds>(1, window_.length()));
    return kLabelWidth + static_cast<double>(time - window_.from) / length * plot_width();
  }

  void draw_axis() {
    const double bottom = top_of(timeline_.rows().size());
    for (int i = 0; i <= kTicks; ++i) {
      const Nanoseconds time = window_.from + window_.length() / kTicks * i;
      svg_.line(x_of(time), kMargin + kAxisHeight - 6, x_of(time), bottom);
      svg_.write({x_of(time), kMargin + 10, time_text(time, true), i == kTicks ? "end" : "start"});
    }
  }

  void draw_row(const TimelineRow& row, double top) {
    svg_.write({kMargin,
                top + options_.row_height * 0.7,
                fmt::format("rank {} {}", row.rank, name_of(row.stream))});
    const double narrowest =
        options_.narrowest * static_cast<double>(window_.length()) / plot_width();
    for (const TimelineBox& it :
         timeline_.boxes(row, window_, static_cast<Nanoseconds>(narrowest))) {
      const Look& look = kLooks[static_cast<std::size_t>(it.paint)];
      used_[static_cast<std::size_t>(it.paint)] = true;
      const double begin = x_of(std::max(it.begin, window_.from));
      const double end = x_of(std::min(it.end, window_.to));
      svg_.box({.x = begin,
                .y = top + 2,
                .width = end - begin,
                .height = options_.row_height - 4,
                .fill = look.colour,
                .hatch = look.hatch,
                .label = label_of(row, it, look),
                .title = title_of(row, it)});
    }
  }

  const Operation* operation_of(const TimelineRow& row, const TimelineBox& box) const {
    const TraceIndex& index = timeline_.index();
    const int track = index.step().track_of_rank[static_cast<std::size_t>(row.rank)];
    return box.operation == kNoSpan ? nullptr : &index.operation({track, box.operation});
  }

  std::string label_of(const TimelineRow& row, const TimelineBox& box, const Look& look) const {
    const Operation* op = operation_of(row, box);
    return op == nullptr || op->microbatch < 0 ? std::string(look.letter)
                                               : fmt::format("{}{}", look.letter, op->microbatch);
  }

  std::string title_of(const TimelineRow& row, const TimelineBox& box) const {
    const Plan& plan = timeline_.index().plan();
    const Operation* op = operation_of(row, box);
    const std::string what =
        op == nullptr ? fmt::format("{} spans, most of the time {}", box.spans, name_of(box.paint))
                      : fmt::format("{}: {}",
                                    name_of(box.paint),
                                    operation_text(plan, plan.class_of_rank(row.rank), *op));
    return fmt::format(
        "{}, {} from {}", what, time_text(box.end - box.begin, true), time_text(box.begin, true));
  }

  /// Key and word of every paint that was used; these boxes count as boxes too.
  void draw_legend() {
    double x = kMargin;
    const double y = top_of(timeline_.rows().size()) + kMargin;
    for (std::size_t i = 0; i < kPaintCount; ++i) {
      if (used_[i]) {
        svg_.box({.x = x,
                  .y = y,
                  .width = 22,
                  .height = 16,
                  .fill = kLooks[i].colour,
                  .hatch = kLooks[i].hatch,
                  .label = std::string(kLooks[i].letter)});
        svg_.write({x + 27, y + 12, std::string(name_of(static_cast<Paint>(i)))});
        x += kLegendWidth;
      }
    }
  }

  const Timeline& timeline_;
  const TimelineSvgOptions& options_;
  TimeWindow window_;
  Svg svg_;
  std::array<bool, kPaintCount> used_{};
};

}  // namespace

std::string timeline_svg(const Timeline& timeline, const TimelineSvgOptions& options) {
  return Drawing(timeline, options).draw();
}

}  // namespace lockstep::view
