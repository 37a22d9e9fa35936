// Options: the command line of lockstep-view.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "visualizer/ui/strings.h"
#include "visualizer/ui/theme.h"

namespace lockstep {

struct ViewOptions {
  std::string file;  ///< scenario, trace, run folder, config.json, profiler's trace or preset id
  /// With two files the first one is what the other is compared with.
  std::string baseline;
  std::string shot;  ///< PNG to write instead of showing a window
  std::string view;  ///< id; empty: the first
  int width = 1280;
  int height = 800;
  std::optional<ui::ThemeId> theme;
  std::optional<ui::Language> language;
  std::optional<float> scale;
  std::optional<std::pair<int, int>> cursor_pixel;
  std::optional<std::int64_t> cursor_time;  ///< [ns] since the step began
  std::string keys;                         ///< typed before the picture is taken; \n is Enter
  std::optional<int> frames;                ///< the window closes after so many
  bool help = false;
  bool version = false;
};

/// UsageError on anything that it does not know.
ViewOptions parse_view_options(const std::vector<std::string>& arguments);
std::string view_help();

}  // namespace lockstep
