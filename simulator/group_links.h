// GroupLinks: what the links of one group of ranks give it: the rates that payload reaches inside
// its nodes and between them, which of NCCL's latencies apply, and what the group cannot use.
//
// Groups of one kind share the cards of a node; a group that lies unevenly is as fast as its
// narrowest node; an NVLink domain is entered by one host per tree.
#pragma once

#include <algorithm>
#include <limits>

#include "core/cluster.h"
#include "simulator/efficiency.h"
#include "simulator/nccl_tuning.h"
#include "simulator/placement.h"

namespace lockstep::sim {

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// Rates that are achieved, byte/s.
struct GroupLinks {
  double ranks = 1;
  double nodes = 1;
  double per_node = 1;             ///< ranks on the fullest node
  double intra = 0;                ///< each way between a device and the rest of its node
  double inter = kUnlimited;       ///< each way between the narrowest node and the others
  double tree_cards = kUnlimited;  ///< as inter, of the hosts where the two trees enter a node
  double nvls = 0;                 ///< as intra, when the switch reduces; 0 = it cannot
  const nccl::Latencies* hop = nullptr;  ///< inside a node
  double extra_intra_us = 0;             ///< what the links' latencies add to NCCL's, per hop
  double extra_inter_us = 0;
  nccl::Generation generation = nccl::Generation::kVolta;
  bool ll128 = false;
  double stage_bytes = 0;  ///< under way in one stage of a pipeline of large chunks

  double ring() const { return std::min(intra, inter); }
  /// A node of a double binary tree sends as often as it has edges: 2 (N-1)/N, the mean.
  double tree_inter() const {
    return nodes > 1 ? std::min(inter, tree_cards) * nodes / (2 * (nodes - 1)) : kUnlimited;
  }
};

GroupLinks links_of(const LinkCosts& costs, const GroupPlacement& placement);

}  // namespace lockstep::sim
