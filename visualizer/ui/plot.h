// Plot: bytes over time: axes, a stacked area, a line, and marks that stand on them.
//
//     const Plot plot{body, window, top};
//     draw_byte_axis(list, plot, left_edge);
//     draw_stack(list, plot, columns);              // one band for each look
//     draw_mark(list, plot, time, bytes, "peak 41.3 GiB");
//
// What it is not: figures of its own. Columns come from a model, as many as `columns_in` says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "visualizer/ui/draw.h"

namespace lockstep::ui {

struct Plot {
  Rect body;
  view::TimeWindow time;
  std::int64_t top = 1;  ///< bytes at the upper edge

  float x_of(Nanoseconds at) const;
  float y_of(std::int64_t bytes) const;
  Nanoseconds time_at(float x) const;
};

/// One layer of a stack: a value for each column, and how it is painted.
struct Band {
  Look look;
  char letter = ' ';
  std::string_view name;
  std::vector<std::int64_t> bytes;
};

/// How many columns a body of so many pixels is painted in.
int columns_in(float width);

/// A height somewhat above `most`, or above `limit` where it is at most `near` times as high: a
/// limit far above would press the values flat.
std::int64_t plot_top(std::int64_t most, std::int64_t limit, int near);

/// Round sizes left of the body, up to its edge, and lines through it.
void draw_byte_axis(ImDrawList& list, const Plot& plot);
/// Width that the texts of draw_byte_axis() need.
float byte_axis_width(std::int64_t top);

/// From the bottom up. Names or letters stand where a band is high enough.
void draw_stack(ImDrawList& list, const Plot& plot, const std::vector<Band>& bands);

/// Dashed, from edge to edge, with its text at the right end.
void draw_limit(ImDrawList& list, const Plot& plot, std::int64_t bytes, std::string_view text);

/// A triangle on a point with a text on a plate beside it.
void draw_mark(
    ImDrawList& list, const Plot& plot, Nanoseconds at, std::int64_t bytes, std::string_view text);

/// A line at a time with a text on a plate at its lower end.
void draw_cursor(ImDrawList& list,
                 const Rect& body,
                 const view::TimeWindow& window,
                 Nanoseconds at,
                 std::string_view text);

/// Text on a plate, moved so that it stays inside of `inside`.
void draw_plate(ImDrawList& list, const Rect& inside, const ImVec2& at, std::string_view text);

struct LegendEntry {
  Look look;
  char letter = ' ';
  std::string text;
};
/// An item as wide as the region, of as many lines as it takes.
void draw_legend(const std::vector<LegendEntry>& entries);

}  // namespace lockstep::ui
