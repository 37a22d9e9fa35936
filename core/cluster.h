// ClusterSpec: the machine. Devices, links inside a node, links between nodes, each preset with its
// source. Rates are per second in SI units (10^12 FLOP/s, 10^9 byte/s written out), sizes in bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/limits.h"
#include "core/problems.h"
#include "core/training.h"

namespace lockstep {

struct DeviceSpec {
  std::string name = "cpu-core";
  double fp64_flops = 48e9;  ///< peak dense FLOP/s per dtype; 0 = not supported
  double fp32_flops = 96e9;
  double tf32_flops = 96e9;
  double bf16_flops = 96e9;
  double fp16_flops = 96e9;
  double fp8_flops = 0;
  double matmul_fraction = 0.9;     ///< of the peak that the best matrix product reaches
  double attention_fraction = 0.6;  ///< of the peak that fused attention's forward reaches
  double power_watts = 0;           ///< what the device may draw; 0 = not a limit
  /// Exponentials, tangents and random numbers per second; 0 = never what an operation waits for.
  double special_rate = 0;
  /// Speed of compute while this device communicates, where the two share nothing but memory; 0 =
  /// by the multiprocessors that communication holds.
  double speed_beside_communication = 0;
  std::int64_t multiprocessors = 1;  ///< that work on tiles of a product at the same time
  std::int64_t memory_bytes = std::int64_t{2} << 30;
  double memory_bandwidth = 6.4e9;  ///< byte/s
  double launch_overhead_s = 1e-6;  ///< host time to issue one operation
  std::int64_t context_bytes = 0;   ///< driver context and libraries, outside any allocator
};

enum class LinkKind : std::uint8_t { kSharedMemory, kPcie, kNvlink, kNvswitch, kNetwork };

struct LinkSpec {
  LinkKind kind = LinkKind::kSharedMemory;
  double bandwidth = 3.2e9;  ///< byte/s per device and direction (intra), per NIC (network)
  double latency_s = 1e-6;
};

/// The defaults are the preset "cpu-laptop" (core/cluster_presets.cpp says where they come from),
/// so that a scenario without a cluster describes a machine that everybody has.
struct ClusterSpec {
  std::string name = "cpu-laptop";
  DeviceSpec device;
  std::int64_t nodes = 1;  ///< a node is what intra_node connects: for NVL72, all 72 devices
  std::int64_t devices_per_node = 8;
  /// Processor cores that the devices of a node share, compute and communication alike; 0 = each
  /// device has its own.
  std::int64_t cores_per_node = 0;
  LinkSpec intra_node;
  LinkSpec inter_node{LinkKind::kNetwork, 0.125e9, 50e-6};
  std::int64_t nics_per_node = 1;
  std::vector<std::string> sources;  ///< where each figure comes from

  std::int64_t devices() const { return saturating_product({nodes, devices_per_node}); }
};

/// Peak dense FLOP/s of matrix products in this precision; 0 where the device cannot do it.
double peak_flops(const DeviceSpec& device, Precision precision);

/// The cluster as each of `ranks` ranks finds it: where a node has fewer cores than ranks, they
/// take turns; where it has fewer than two per rank, communication takes turns with compute.
ClusterSpec as_shared(const ClusterSpec& cluster, std::int64_t ranks);

/// All problems of the cluster section by itself, with key paths below "cluster".
void validate(const ClusterSpec& cluster, Problems& problems);

}  // namespace lockstep
