#include "core/cluster.h"

#include <algorithm>

#include "core/validate_fields.h"

namespace lockstep {

double peak_flops(const DeviceSpec& device, Precision precision) {
  switch (precision) {
    case Precision::kFp64:
      return device.fp64_flops;
    case Precision::kFp32:
      return device.fp32_flops;
    case Precision::kTf32:
      return device.tf32_flops;
    case Precision::kBf16:
    case Precision::kAutocast:
      return device.bf16_flops;
    case Precision::kFp16:
      return device.fp16_flops;
  }
  return 0;
}

ClusterSpec as_shared(const ClusterSpec& cluster, std::int64_t ranks) {
  ClusterSpec shared = cluster;
  if (cluster.cores_per_node == 0 || ranks <= 0) {
    return shared;
  }
  constexpr double kLeastSpeed = 0.01;  // while another thread has the core, for all it takes
  const auto cores = static_cast<double>(cluster.cores_per_node);
  const double cores_each = cores / static_cast<double>(std::min(ranks, cluster.devices_per_node));
  const double turn = std::min(1.0, cores_each);
  DeviceSpec& device = shared.device;
  for (double* rate : {&device.fp64_flops,
                       &device.fp32_flops,
                       &device.tf32_flops,
                       &device.bf16_flops,
                       &device.fp16_flops,
                       &device.fp8_flops,
                       &device.special_rate,
                       &device.memory_bandwidth,
                       &shared.intra_node.bandwidth}) {
    *rate *= turn;
  }
  device.launch_overhead_s /= turn;
  const double beside =
      device.speed_beside_communication > 0 ? device.speed_beside_communication : 1;
  device.speed_beside_communication =
      std::max(kLeastSpeed, beside * std::clamp(cores_each - 1, 0.0, 1.0));
  return shared;
}

void validate(const ClusterSpec& cluster, Problems& problems) {
  validate_fields("cluster", cluster, problems);
  problems.require(cluster.devices() <= kMaxWorldSize,
                   "cluster.nodes",
                   "times cluster.devices_per_node is more than 1048576 devices");
  problems.require(cluster.device.context_bytes < cluster.device.memory_bytes,
                   "cluster.device.context_bytes",
                   "must be less than cluster.device.memory_bytes");
  problems.require(cluster.intra_node.kind != LinkKind::kNetwork,
                   "cluster.intra_node.kind",
                   "connects devices of one node: shared_memory, pcie, nvlink or nvswitch");
  problems.require(
      cluster.inter_node.kind == LinkKind::kNetwork, "cluster.inter_node.kind", "must be network");
}

}  // namespace lockstep
