// RankClasses: which ranks do the same at the same times, so that one of them is simulated for all.
//
// The coarsest stable partition of the ranks (colour refinement): it begins with what a rank runs
// and what its links and perturbations are, and splits until any two ranks of a class have groups
// and peers of equal classes. A slow rank among 16,384 splits them into some tens of classes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cluster.h"
#include "core/plan.h"
#include "simulator/placement.h"
#include "simulator/what_if.h"

namespace lockstep::sim {

/// One group, as seen by the classes: it stands for all groups of its kind that behave alike.
struct GroupInstance {
  std::int32_t communicator = 0;
  std::int32_t placement = 0;         ///< index into RankClasses::placements
  std::vector<std::int32_t> classes;  ///< of its members, each once, ascending
  std::vector<std::int32_t> ranks;    ///< the members of the first such group
};

struct RankClass {
  std::int32_t plan_class = 0;
  std::vector<std::int32_t> ranks;   ///< ascending
  double compute_factor = 1;         ///< of all compute
  double skew = 1;                   ///< of forward, backward and recompute on top
  std::vector<std::int32_t> groups;  ///< by communicator: index into RankClasses::groups, or -1
  std::vector<std::int32_t> peers;   ///< by pipeline coordinate: class of that peer, or -1
  std::vector<std::int32_t> peer_placements;  ///< the pair as a group
};

struct RankClasses {
  std::vector<RankClass> classes;  ///< by first rank
  std::vector<std::int32_t> class_of_rank;
  std::vector<GroupInstance> groups;
  std::vector<GroupPlacement> placements;
};

/// `fold` false: every rank is a class of its own.
RankClasses classify(const Plan& plan,
                     const ClusterSpec& cluster,
                     const WhatIf& what_if,
                     bool fold);

}  // namespace lockstep::sim
