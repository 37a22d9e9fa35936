// CommunicationCost: seconds of a collective or a message, with the algorithm and protocol that
// NCCL would choose and the terms of its formula.
//
// A group is priced by its placement (simulator/placement.h). The table of latencies and bandwidth
// factors is NCCL's own (src/graph/tuning.cc of 2.28); see communication_cost.cpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/cluster.h"
#include "core/plan.h"
#include "simulator/placement.h"

namespace lockstep::sim {

enum class Algorithm : std::uint8_t { kNone, kRing, kTree, kNvls, kNvlsTree, kDirect };
enum class Protocol : std::uint8_t { kNone, kLl, kLl128, kSimple };
std::string_view name_of(Algorithm algorithm);
std::string_view name_of(Protocol protocol);

struct CommunicationCost {
  double seconds = 0;
  double latency_s = 0;   ///< part of seconds that does not grow with the bytes
  double bandwidth = 0;   ///< byte/s that the rest was divided by
  double wire_bytes = 0;  ///< sent by one member
  Algorithm algorithm = Algorithm::kNone;
  Protocol protocol = Protocol::kNone;
};

/// `elements` as in core/operands.h (of one shard for all_gather and reduce_scatter).
CommunicationCost collective_cost(const ClusterSpec& cluster,
                                  const GroupPlacement& placement,
                                  Collective collective,
                                  std::int64_t elements,
                                  DType dtype);

/// A send that meets its recv. `placement` is that of the two ranks as a group.
CommunicationCost message_cost(const ClusterSpec& cluster,
                               const GroupPlacement& placement,
                               std::int64_t bytes);

/// Speed of compute kernels on a device while this communication runs on it, in (0, 1]: its
/// channels occupy multiprocessors and memory bandwidth.
double compute_speed_beside(const ClusterSpec& cluster, const GroupPlacement& placement);

}  // namespace lockstep::sim
