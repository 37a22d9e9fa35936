// Presets: scenarios that show one thing each, for the start screen and `--scenario NAME`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/scenario.h"
#include "visualizer/ui/strings.h"

namespace lockstep::app {

struct Preset {
  std::string_view id;
  ui::S title;
  ui::S note;
  std::string_view json;  ///< scenario.json
};

const std::vector<Preset>& presets();
/// Null when there is none of this id.
const Preset* find_preset(std::string_view id);
/// As a person would have written it: not resolved.
Scenario preset_scenario(const Preset& preset);

}  // namespace lockstep::app
