// Settings: what the window remembers: language, theme, scale, panels, recent files. Kept as lines
// of "key = value" in $XDG_CONFIG_HOME/lockstep/view.conf.
#pragma once

#include <string>
#include <vector>

#include "visualizer/ui/strings.h"
#include "visualizer/ui/theme.h"

namespace lockstep::app {

inline constexpr float kLeastScale = 0.75F;
inline constexpr float kMostScale = 3.0F;

struct Settings {
  ui::Language language = ui::Language::kEnglish;
  ui::ThemeId theme = ui::ThemeId::kDark;
  float scale = 1;
  float left = 0.25F;    ///< of the width
  float right = 0.17F;   ///< of the width
  float bottom = 0.24F;  ///< of the height
  std::vector<std::string> recent;

  void add_recent(const std::string& path);
};

/// Unknown keys and values are passed over: a newer program may have written them.
Settings parse_settings(const std::string& text);
std::string settings_text(const Settings& settings);

/// Empty where the user has no home.
std::string settings_path();
/// Defaults when there is no such file.
Settings load_settings(const std::string& path);
/// False when it cannot be written; nobody has to care.
bool save_settings(const std::string& path, const Settings& settings);

}  // namespace lockstep::app
