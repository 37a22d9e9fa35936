// Window: the program on a screen: GLFW, OpenGL 3.3, ImGui's backends for both.
#pragma once

#include "visualizer/options.h"

namespace lockstep {

/// Until the window is closed. NotSupportedError without a display or without OpenGL 3.3.
void run_window(const ViewOptions& options);

}  // namespace lockstep
