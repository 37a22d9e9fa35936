// Paint legend: one line that says what the colours, hatches and letters of lanes mean.
#pragma once

#include "visualizer/models/lanes.h"

namespace lockstep::views {

/// Only paints that occur.
void draw_paint_legend(const view::Lanes& lanes);

}  // namespace lockstep::views
