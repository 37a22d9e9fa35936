#include "simulator/cost_model.h"

#include "simulator/communication_cost.h"
#include "simulator/compute_cost.h"

namespace lockstep::sim {

double ClusterCosts::seconds(const PriceKey& key) const {
  if (key.kind == OperationKind::kHost) {
    return cluster_.device.launch_overhead_s;
  }
  return compute_cost(cluster_.device, key.work, key.shape, key.dtype, tf32_, efficiency_).seconds;
}

double ClusterCosts::seconds(const PriceKey& key, const GroupPlacement& placement) const {
  const LinkCosts costs(cluster_, efficiency_);
  if (key.kind == OperationKind::kCollective) {
    return collective_cost(costs, placement, key.collective, key.elements, key.dtype).seconds;
  }
  return message_cost(costs, placement, key.elements * size_of(key.dtype)).seconds;
}

double ClusterCosts::compute_speed_beside(const GroupPlacement& placement) const {
  return sim::compute_speed_beside(cluster_, placement);
}

}  // namespace lockstep::sim
