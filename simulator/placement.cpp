#include "simulator/placement.h"

#include <algorithm>

namespace lockstep::sim {

GroupPlacement placement_of(const ClusterSpec& cluster, std::span<const int> ranks) {
  const auto per_node = static_cast<int>(cluster.devices_per_node);
  GroupPlacement placement;
  placement.members = static_cast<std::int32_t>(ranks.size());
  placement.nodes = 0;
  placement.most_per_node = 0;
  placement.least_per_node = placement.members;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last < ranks.size() && ranks[last] / per_node == ranks[first] / per_node) {
      ++last;
    }
    const auto here = static_cast<std::int32_t>(last - first);
    ++placement.nodes;
    placement.most_per_node = std::max(placement.most_per_node, here);
    placement.least_per_node = std::min(placement.least_per_node, here);
    first = last;
  }
  if (placement.nodes > 1) {
    placement.sharing = std::max(1, per_node / placement.most_per_node);
  }
  return placement;
}

}  // namespace lockstep::sim
