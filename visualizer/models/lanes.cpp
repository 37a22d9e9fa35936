#include "visualizer/models/lanes.h"

#include <algorithm>

namespace lockstep::view {

std::string_view name_of(Paint paint) {
  static constexpr std::string_view kNames[] = {"forward",
                                                "backward",
                                                "backward weight",
                                                "recompute",
                                                "optimizer",
                                                "other",
                                                "transfer",
                                                "waiting",
                                                "host",
                                                "kernel"};
  return kNames[static_cast<std::size_t>(paint)];
}

char letter_of(Paint paint) {
  static constexpr std::string_view kLetters = "FBWROX=~HK";
  return kLetters[static_cast<std::size_t>(paint)];
}

std::vector<Nanoseconds> paint_times(const Lanes& lanes,
                                     std::size_t row,
                                     const TimeWindow& window) {
  std::vector<Nanoseconds> times(kPaintCount, 0);
  for (const LaneBox& box : lanes.boxes(row, window, 0)) {
    const Nanoseconds part = std::min(box.end, window.to) - std::max(box.begin, window.from);
    times[static_cast<std::size_t>(box.paint)] += std::max<Nanoseconds>(0, part);
  }
  return times;
}

}  // namespace lockstep::view
