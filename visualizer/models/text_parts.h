// Text parts: what the text twins of all views are put together from: times, a time axis, a curve
// of one line.
//
//     line(label) + axis_text({0, 20'000'000}, 80, true)   // "|0 ms          |5          |10"
//     line("memory") + curve_text(bytes, true)             // "▂▃▄▅▆█▆▅"
//
// What it is not: tables and bytes (core/report_text.h), or a terminal's properties (cli).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "visualizer/models/timeline.h"

namespace lockstep::view {

/// What all text twins want to know.
struct TextOptions {
  int width = 100;    ///< columns of the whole picture; at least kNarrowestText are taken
  bool utf8 = false;  ///< blocks instead of ASCII, and the letter mu
};
inline constexpr int kNarrowestText = 40;

/// "12.3 ms": three significant digits in the unit that fits.
std::string time_text(Nanoseconds time, bool utf8 = false);

/// Ticks at round times over `columns` columns, each label at its place; the first has the unit.
std::string axis_text(const TimeWindow& window, int columns, bool utf8);

/// One character for each value, in eighths of the highest one, rounded up: what is there is seen.
std::string curve_text(const std::vector<std::int64_t>& values, bool utf8);

/// "37.5 %"
std::string percent_text(double fraction);

/// At most `width` columns; what is cut off ends in "..".
std::string cut_text(const std::string& text, int width);

/// The column of `columns` that shows `time`, inside the picture for times outside of the window.
int column_of(const TimeWindow& window, int columns, Nanoseconds time);

}  // namespace lockstep::view
