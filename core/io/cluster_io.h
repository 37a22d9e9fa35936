// Cluster files: one machine by itself, as `--cluster FILE` reads it and `lockstep calibrate`
// writes it. The keys are those of the "cluster" section of a scenario, beside "schema_version".
#pragma once

#include <string>
#include <string_view>

#include "core/cluster.h"

namespace lockstep {

inline constexpr int kClusterVersion = 1;

/// Reads a file. BadInputError with all problems.
ClusterSpec load_cluster(const std::string& path);

/// Reads text; `source` is for messages.
ClusterSpec parse_cluster(std::string_view text, std::string_view source);

/// All fields in a fixed order, ending with a newline; parse_cluster gives the same cluster back.
std::string cluster_text(const ClusterSpec& cluster);

}  // namespace lockstep
