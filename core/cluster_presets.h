// Named machines, one node each: `nodes` is for the user (or resolved()) to set. FLOP/s are dense
// peaks of the vendor's data sheet, memory is what the driver reports, and every figure has its
// source in ClusterSpec::sources.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster.h"

namespace lockstep {

struct ClusterPreset {
  ClusterSpec cluster;               ///< cluster.name is the preset's name
  std::vector<std::string> aliases;  ///< what else people call it
};

const std::vector<ClusterPreset>& cluster_presets();

/// The preset with this name or alias, or none.
std::optional<ClusterSpec> find_cluster_preset(std::string_view name);

/// Why `name` is no preset, with the nearest name.
std::string unknown_cluster_message(std::string_view name);

}  // namespace lockstep
