// TimelineSvg: a step drawn as an SVG picture: a row per stream of every rank, boxes with letter,
// hatch and colour by what ran, a time axis above, the legend below.
#pragma once

#include <optional>
#include <string>

#include "visualizer/models/svg.h"
#include "visualizer/models/timeline.h"

namespace lockstep::view {

struct TimelineSvgOptions {
  double width = 1200;  ///< of the picture
  double row_height = 20;
  double narrowest = 0.5;                 ///< boxes narrower than this are folded
  std::optional<TimeWindow> window = {};  ///< nothing: the whole step
};

std::string timeline_svg(const Timeline& timeline, const TimelineSvgOptions& options = {});

}  // namespace lockstep::view
