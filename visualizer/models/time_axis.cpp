#include "visualizer/models/time_axis.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace lockstep::view {
namespace {

struct Unit {
  Nanoseconds size;
  std::string_view name;
};

/// The largest unit of which `time` has one.
Unit unit_of(Nanoseconds time) {
  static constexpr Unit kUnits[] = {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "\xC2\xB5s"}};
  for (const Unit& unit : kUnits) {
    if (time >= unit.size) {
      return unit;
    }
  }
  return {1, "ns"};
}

std::string tick_text(Nanoseconds time, const Unit& unit) {
  const double value = static_cast<double>(time) / static_cast<double>(unit.size);
  return fmt::format("{:.9g} {}", value, unit.name);
}

}  // namespace

Nanoseconds round_step(Nanoseconds value) {
  constexpr Nanoseconds kLargest = 1'000'000'000'000'000'000;
  for (Nanoseconds power = 1; power < kLargest; power *= 10) {
    for (const Nanoseconds digit : {1, 2, 5}) {
      if (digit * power >= value) {
        return digit * power;
      }
    }
  }
  return kLargest;
}

TimeAxis time_axis(const TimeWindow& window, int most) {
  TimeAxis axis;
  axis.step = round_step(std::max<Nanoseconds>(1, window.length() / std::max(1, most)));
  Nanoseconds first = window.from / axis.step * axis.step;
  if (first < window.from) {
    first += axis.step;
  }
  // More than four digits in front of the ones that change would hide them.
  constexpr Nanoseconds kFarIn = 10'000;
  const bool relative = first / axis.step > kFarIn;
  axis.base = relative ? first : 0;
  const Unit unit = unit_of(relative ? axis.step : std::max(window.to, axis.step));
  for (Nanoseconds time = first; time <= window.to; time += axis.step) {
    if (relative && time > first) {
      axis.ticks.push_back({time, "+" + tick_text(time - first, unit)});
    } else {
      axis.ticks.push_back({time, tick_text(time, relative ? unit_of(time) : unit)});
    }
  }
  return axis;
}

}  // namespace lockstep::view
