#include "core/cluster.h"

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
