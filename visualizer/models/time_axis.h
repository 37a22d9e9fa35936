// Time axis: round times to put ticks at, and what to write at them.
#pragma once

#include <string>
#include <vector>

#include "visualizer/models/lanes.h"

namespace lockstep::view {

struct Tick {
  Nanoseconds time = 0;
  std::string text;  ///< "12.5 ms"; far in, "+40 ns" from the axis' base
};

struct TimeAxis {
  Nanoseconds base = 0;  ///< what texts with a sign are relative to; 0 = none
  Nanoseconds step = 1;  ///< between ticks: 1, 2 or 5 times a power of ten
  std::vector<Tick> ticks;
};

/// At most about `most` ticks, all inside the window.
TimeAxis time_axis(const TimeWindow& window, int most);

/// The smallest of 1, 2, 5, 10, 20, ... that is at least `value`.
Nanoseconds round_step(Nanoseconds value);

}  // namespace lockstep::view
