// CommunicationCost: seconds of a collective or a message, with the algorithm and protocol that
// NCCL would choose and the terms of its formula.
//
//   seconds = latency + bytes / bandwidth + fill
//
// The latency counts hops by NCCL's own table (simulator/nccl_tuning.h). The bandwidth is what the
// group's links achieve, divided by how often a byte crosses the narrowest of them. The fill is the
// time until a pipeline of large chunks moves at that rate. Cheap, no allocation: it is called for
// every kind of operation of a plan, and by sliders.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/cluster.h"
#include "core/plan.h"
#include "simulator/efficiency.h"
#include "simulator/nccl_tuning.h"
#include "simulator/placement.h"

namespace lockstep::sim {

std::string_view name_of(Algorithm algorithm);
std::string_view name_of(Protocol protocol);

struct CommunicationCost {
  double seconds = 0;     ///< latency_s + bytes / bandwidth + fill_s
  double latency_s = 0;   ///< does not grow with the bytes
  double bytes = 0;       ///< of the whole tensor: of an all-gather, what it gives
  double bandwidth = 0;   ///< byte/s of the tensor (nccl-tests' algbw at large sizes); 0 = no bytes
  double fill_s = 0;      ///< first bytes, which find the pipeline empty
  double wire_bytes = 0;  ///< sent by one member, the mean over the members
  Algorithm algorithm = Algorithm::kNone;
  Protocol protocol = Protocol::kNone;
};

/// `elements` as in core/operands.h (of one shard for all_gather and reduce_scatter).
CommunicationCost collective_cost(const LinkCosts& costs,
                                  const GroupPlacement& placement,
                                  Collective collective,
                                  std::int64_t elements,
                                  DType dtype);

/// One way of a collective, whether or not it is the best; seconds is infinite where NCCL would not
/// offer it. For tables that show what the choice was made from.
CommunicationCost collective_cost_by(const LinkCosts& costs,
                                     const GroupPlacement& placement,
                                     Collective collective,
                                     double bytes,
                                     Algorithm algorithm,
                                     Protocol protocol);

/// A send that meets its recv. `placement` is that of the two ranks as a group.
CommunicationCost message_cost(const LinkCosts& costs,
                               const GroupPlacement& placement,
                               std::int64_t bytes);

/// Speed of compute kernels on a device while this communication runs on it, in (0, 1]: its
/// channels occupy multiprocessors.
double compute_speed_beside(const ClusterSpec& cluster, const GroupPlacement& placement);

/// The formula with values: "ring, LL128: 27.3 us + 8.39 MB / 378 GB/s + 0 us of fill = 49.5 us".
std::string explain(const CommunicationCost& cost);

}  // namespace lockstep::sim
