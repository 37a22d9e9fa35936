#include "simulator/group_links.h"

namespace lockstep::sim {
namespace {

constexpr double kMicro = 1e-6;

/// From the number formats and links that a generation brought.
nccl::Generation generation_of(const ClusterSpec& cluster) {
  constexpr double kNvlink5 = 900e9;
  if (cluster.device.fp8_flops > 0) {
    return cluster.intra_node.bandwidth >= kNvlink5 ? nccl::Generation::kBlackwell
                                                    : nccl::Generation::kHopper;
  }
  return cluster.device.tf32_flops > 0 ? nccl::Generation::kAmpere : nccl::Generation::kVolta;
}

/// Part of a device's links that lead to other members, where no switch joins them all.
double mesh_share(const ClusterSpec& cluster, std::int32_t members) {
  const std::int64_t devices = cluster.devices_per_node;
  if (cluster.intra_node.kind != LinkKind::kNvlink || members >= devices || members < 2) {
    return 1;
  }
  if (devices == 8) {
    return nccl::kCubeMeshLinks[static_cast<std::size_t>(members)] / nccl::kCubeMeshDegree;
  }
  return static_cast<double>(members - 1) / static_cast<double>(devices - 1);
}

/// A member uses the cards nearest to it; groups of one kind share a node's cards alike.
double node_share(const ClusterSpec& cluster, const GroupPlacement& placement) {
  const auto cards = static_cast<double>(std::min(cluster.devices_per_node, cluster.nics_per_node));
  return std::min(1.0 / placement.sharing, placement.least_per_node / cards);
}

/// Part of the group's cards in an NVLink domain that its trees use: each of the two enters it by
/// one host, whose devices pass the rest on over NVLink.
double tree_host_share(const GroupPlacement& placement) {
  constexpr double kTrees = 2;
  return placement.least_per_node <= nccl::kLargestHost
             ? 1
             : kTrees * nccl::kDevicesPerTray / placement.least_per_node;
}

}  // namespace

GroupLinks links_of(const LinkCosts& costs, const GroupPlacement& placement) {
  const ClusterSpec& cluster = costs.cluster;
  const Efficiency& efficiency = costs.efficiency;
  const LinkSpec& intra = cluster.intra_node;
  const LinkSpec& inter = cluster.inter_node;
  const bool shared_memory = intra.kind == LinkKind::kSharedMemory;
  GroupLinks links;
  links.stage_bytes = efficiency.pipeline_stage_bytes;
  links.ranks = placement.members;
  links.nodes = placement.nodes;
  links.per_node = placement.most_per_node;
  links.generation = generation_of(cluster);
  const double slowest = intra.bandwidth / placement.slowdown;
  links.intra = slowest * mesh_share(cluster, placement.most_per_node) *
                (shared_memory ? 1 : efficiency.link_fraction);
  if (placement.nodes > 1) {
    links.inter = static_cast<double>(cluster.nics_per_node) * inter.bandwidth *
                  node_share(cluster, placement) *
                  (shared_memory ? 1 : efficiency.network_fraction) / placement.slowdown;
    links.tree_cards = links.inter * tree_host_share(placement);
  }
  const bool nvlink = intra.kind == LinkKind::kNvlink || intra.kind == LinkKind::kNvswitch;
  links.hop = nvlink ? &nccl::kNvlinkHop : &nccl::kPcieHop;
  links.ll128 = nvlink;
  // The third NVSwitch, of the first devices with fp8, reduces; a pair gains nothing by it.
  if (intra.kind == LinkKind::kNvswitch && links.generation >= nccl::Generation::kHopper &&
      placement.least_per_node > 2) {
    links.nvls = slowest * efficiency.nvls_fraction;
  }
  links.extra_intra_us = std::max(0.0, intra.latency_s / kMicro - links.hop->ring[0]);
  links.extra_inter_us = std::max(0.0, inter.latency_s / kMicro - nccl::kNetworkHop.ring[0]);
  return links;
}

}  // namespace lockstep::sim
