// Placement: how a group of ranks lies on the machine. Rank r is device r mod D of node r div D,
// with D devices per node. Groups with equal placement cost the same, so a plan of 16,384 ranks has
// a handful.
#pragma once

#include <compare>
#include <cstdint>
#include <span>

#include "core/cluster.h"

namespace lockstep::sim {

struct GroupPlacement {
  std::int32_t members = 1;
  std::int32_t nodes = 1;          ///< that have members
  std::int32_t most_per_node = 1;  ///< members on the fullest node
  std::int32_t least_per_node = 1;
  std::int32_t sharing = 1;  ///< groups of this kind that leave its busiest node, itself included
  double slowdown = 1;       ///< of its slowest link, a what-if: 2 = half the bandwidth
  auto operator<=>(const GroupPlacement&) const = default;
};

/// Of the group `ranks` (ascending). Groups of one kind cover the machine alike, so the NICs of a
/// node are shared by as many of them as have members there: devices per node / members on it,
/// when the group leaves the node. `slowdown` stays 1.
GroupPlacement placement_of(const ClusterSpec& cluster, std::span<const int> ranks);

}  // namespace lockstep::sim
