#include "visualizer/models/text_parts.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "core/report_text.h"

namespace lockstep::view {
namespace {

struct Unit {
  double nanoseconds;
  std::string_view name;
};

Unit unit_of(Nanoseconds time, bool utf8) {
  if (time < 1'000) {
    return {1, "ns"};
  }
  if (time < 1'000'000) {
    return {1e3, utf8 ? "\xC2\xB5s" : "us"};
  }
  return time < 1'000'000'000 ? Unit{1e6, "ms"} : Unit{1e9, "s"};
}

/// The smallest of 1, 2, 5, 10, 20, ... that is at least `value`.
Nanoseconds round_step(Nanoseconds value) {
  for (Nanoseconds power = 1;; power *= 10) {
    for (const Nanoseconds digit : {1, 2, 5}) {
      if (digit * power >= value) {
        return digit * power;
      }
    }
  }
}

}  // namespace

std::string time_text(Nanoseconds time, bool utf8) {
  const Unit unit = unit_of(time, utf8);
  const double value = static_cast<double>(time) / unit.nanoseconds;
  const int decimals = unit.nanoseconds == 1 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, unit.name);
}

std::string axis_text(const TimeWindow& window, int columns, bool utf8) {
  const Unit unit = unit_of(window.to, utf8);
  const int fewest = 12;  // columns between ticks, so that labels do not touch
  const Nanoseconds step = round_step(std::max<Nanoseconds>(1, window.length() * fewest / columns));
  std::string line;
  std::size_t column = 0;
  const Nanoseconds first = (window.from + step - 1) / step * step;
  for (Nanoseconds tick = first; tick < window.to; tick += step) {
    const auto at = static_cast<std::size_t>((tick - window.from) * columns / window.length());
    std::string text = fmt::format("|{:g}", static_cast<double>(tick) / unit.nanoseconds);
    if (tick == first) {
      text += fmt::format(" {}", unit.name);
    }
    if (at < column || at + text_width(text) > static_cast<std::size_t>(columns)) {
      continue;
    }
    line.append(at - column, ' ');
    line += text;
    column = at + text_width(text);
  }
  return line;
}

std::string curve_text(const std::vector<std::int64_t>& values, bool utf8) {
  static constexpr std::string_view kBlocks[] = {
      " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
  static constexpr std::string_view kAscii[] = {" ", "_", ".", ":", "-", "=", "+", "*", "#"};
  if (values.empty()) {
    return {};
  }
  const std::int64_t most =
      std::max<std::int64_t>(1, *std::max_element(values.begin(), values.end()));
  std::string text;
  for (const std::int64_t value : values) {
    const double eighths = 8 * static_cast<double>(value) / static_cast<double>(most);
    const auto level = static_cast<std::size_t>(std::ceil(eighths));
    text += utf8 ? kBlocks[level] : kAscii[level];
  }
  return text;
}

std::string percent_text(double fraction) {
  return fmt::format("{:.1f} %", fraction * 100);
}

std::string cut_text(const std::string& text, int width) {
  if (text_width(text) <= static_cast<std::size_t>(width)) {
    return text;
  }
  // Names are ASCII; a longer character at the cut loses its last bytes, which is seen.
  return text.substr(0, static_cast<std::size_t>(std::max(0, width - 2))) + "..";
}

int column_of(const TimeWindow& window, int columns, Nanoseconds time) {
  const Nanoseconds length = std::max<Nanoseconds>(1, window.length());
  const double part = static_cast<double>(time - window.from) / static_cast<double>(length);
  return std::clamp(static_cast<int>(std::floor(part * columns)), 0, columns - 1);
}

}  // namespace lockstep::view
