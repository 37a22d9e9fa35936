// Named models. Sizes of published models come from their model cards' config.json; parameter
// counts are checked against the published ones by the tests. Names are matched without case, and
// by aliases such as "meta-llama/Llama-3.1-8B".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model.h"

namespace lockstep {

struct ModelPreset {
  ModelSpec model;                   ///< model.name is the preset's name
  std::string source;                ///< where the sizes come from
  std::vector<std::string> aliases;  ///< what else people call it
};

/// All presets, smallest models of each family first.
const std::vector<ModelPreset>& model_presets();

/// The preset with this name or alias, or none.
std::optional<ModelSpec> find_model_preset(std::string_view name);

/// Why `name` is no preset, with the nearest name.
std::string unknown_model_message(std::string_view name);

}  // namespace lockstep
