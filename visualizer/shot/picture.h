// Picture: the current window's last frame as pixels, by the rasteriser: the same with and without
// a display.
#pragma once

#include "visualizer/shot/image.h"

namespace lockstep::shot {

/// A frame was rendered, and the next one has not begun.
bool can_take_picture();
/// Of the current ImGui context.
Image take_picture();

}  // namespace lockstep::shot
