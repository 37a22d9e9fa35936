// StartScreen: examples, recent files, and how to open others.
#pragma once

#include <functional>
#include <string>

#include "visualizer/app/session.h"
#include "visualizer/app/settings.h"

namespace lockstep::app {

/// Over the current window. `open` is called with what was chosen; `browse` shows the open dialog,
/// `back` what is open.
void draw_start_screen(const Session& session,
                       const Settings& settings,
                       const std::function<void(const std::string&)>& open,
                       const std::function<void()>& browse,
                       const std::function<void()>& back);

}  // namespace lockstep::app
