// Efficiency: every constant of the cost model that is not a fact about a device or a link. Each
// has a physical meaning and stands here once; at most fifteen for everything.
//
// One object of them goes down to the cost functions; without one they take kEfficiency, these
// defaults. How well they do on rows that they were not chosen by: tests/validation/refit.cpp.
#pragma once

#include "core/cluster.h"

namespace lockstep::sim {

struct Efficiency {
  // ---- compute ---------------------------------------------------------------------------------

  /// Bytes that device memory delivers to a streaming kernel, of its data sheet rate.
  double memory_fraction = 0.85;
  /// Times that an element-wise operation's operands cross memory: frameworks split it in kernels
  /// (a norm and its statistics, a bias gradient beside its product, a cast, a copy for a layout).
  double elementwise_passes = 1.6;
  /// Part of the host's issue time that a kernel takes at least: start, drain and the gap behind
  /// it.
  double kernel_floor = 0.6;
  /// Bytes that a tile moves while it does not multiply, of its result: writing it at the end of a
  /// wave, when all multiprocessors do, and the first operands.
  double tile_traffic = 1.7;
  /// Cost of loading operands: a tile of r x c takes 1 + load x (1/r + 1/c) times as long, relative
  /// to the largest.
  double tile_load = 16;
  /// 16-bit tensor core FLOPs per joule of the whole device that are sustained: what its power
  /// limit allows where that is less than the best product's rate.
  double flops_per_joule = 1.02e12;
  /// Rate of fused attention's backward, of its forward.
  double flash_backward = 0.8;
  /// Keys of a tile on the diagonal that a causal kernel cannot skip.
  double flash_tile = 128;
  /// Times that the scores of plain attention cross device memory in forward: products, scale,
  /// mask, softmax, dropout. Backward writes, reads and writes one gradient of them more.
  double softmax_passes = 6;

  // ---- communication ---------------------------------------------------------------------------

  /// Part of a GPU link's rate that payload reaches: packet headers, acknowledgements and flow
  /// control take the rest (NCCL's own figures: 20 to 20.6 of 25 GB/s per NVLink, 24 of 32 on
  /// PCIe).
  double link_fraction = 0.8;
  /// The same while the NVSwitch reduces: reads and multicasts share the links.
  double nvls_fraction = 0.66;
  /// The same of a network card: headers, and flows that meet on one path of the fabric.
  double network_fraction = 0.8;
  /// Bytes under way in one stage of a pipeline of large chunks, over all channels: until they are
  /// there the next stage waits.
  double pipeline_stage_bytes = 4.0 * 1024 * 1024;
};

inline constexpr Efficiency kEfficiency{};

/// A cluster and how well its links are used: what prices of communication depend on. Made from a
/// cluster alone where the defaults are meant. Keeps references.
struct LinkCosts {
  // NOLINTNEXTLINE(google-explicit-constructor): a cluster is all that most callers have
  LinkCosts(const ClusterSpec& machine, const Efficiency& how_well = kEfficiency)
      : cluster(machine), efficiency(how_well) {}

  const ClusterSpec& cluster;
  const Efficiency& efficiency;
};

}  // namespace lockstep::sim
