#include "simulator/communication_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "simulator/group_links.h"

namespace lockstep::sim {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;
constexpr double kNever = std::numeric_limits<double>::infinity();  // seconds

std::size_t index_of(Protocol protocol) {
  return static_cast<std::size_t>(protocol) - static_cast<std::size_t>(Protocol::kLl);
}

double floor_log2(double value) {
  return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(value)) - 1);
}

/// Hops of a ring: all-reduce goes around twice.
double ring_steps(Collective collective, double ranks) {
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * (ranks - 1);
    case Collective::kBroadcast:
    case Collective::kReduce:
      return ranks;
    default:
      return ranks - 1;
  }
}

/// One way, as NCCL's own formula has it: time = latency + bytes / bandwidth.
struct Way {
  double latency_us = kNever;
  double bandwidth = 0;
  double stages = 0;  ///< pipeline stages that fill one after the other
};

double ll_max(const GroupLinks& links) {
  return kGiga * (links.nodes > 1
                      ? nccl::kLlMaxIntel[links.nodes > 2 ? 2 : 1]
                      : nccl::kLlMaxOneNode[static_cast<std::size_t>(links.generation)]);
}

/// Flags of LL128 and Simple's flush of the card cost the network's latency once more.
double inter_hop(const GroupLinks& links, const nccl::ByProtocol& table, Protocol protocol) {
  return table[index_of(protocol)] + links.extra_inter_us * (protocol == Protocol::kSimple ? 2 : 1);
}

Way ring(const GroupLinks& links, Collective collective, Protocol protocol, double bytes) {
  const std::size_t p = index_of(protocol);
  const double steps = ring_steps(collective, links.ranks);
  const double rounds = collective == Collective::kAllReduce ? 2 : 1;
  const bool rooted = collective == Collective::kBroadcast || collective == Collective::kReduce;
  const double network_steps = links.nodes > 1 ? rounds * (links.nodes - (rooted ? 0 : 1)) : 0;
  double intra = links.hop->ring[p] + links.extra_intra_us;
  if (links.nodes > 1) {
    intra = std::max(intra, nccl::kNetOverhead * (protocol == Protocol::kSimple ? 3 : 1));
  }
  // With one rank per node no hop hides behind another's: NCCL then counts the tree's.
  const nccl::ByProtocol& network =
      links.per_node > 1 ? nccl::kNetworkHop.ring : nccl::kNetworkHop.tree;
  Way way;
  way.latency_us = nccl::kBase.ring[p] + (steps - network_steps) * intra +
                   network_steps * inter_hop(links, network, protocol);
  if (protocol == Protocol::kSimple && links.nodes > 1 && rounds == 2 &&
      bytes >= nccl::kPlateauBytes * nccl::kChannels * links.ranks) {
    way.latency_us *=
        links.generation < nccl::Generation::kAmpere ? nccl::kPlateauVolta : nccl::kPlateau;
  }
  double bus = links.ring();
  if (protocol == Protocol::kLl) {
    bus = std::min(ll_max(links), bus * nccl::kRingLl);
  } else if (protocol == Protocol::kLl128) {
    bus *= nccl::kRingLl128;
  }
  way.bandwidth = bus * links.ranks / steps;
  way.stages = rounds;
  return way;
}

/// NCCL's factor has steps by powers of two; the line between them keeps time growing with bytes.
double tree_correction(Protocol protocol, double bytes) {
  const auto& factors = nccl::kTreeCorrection[index_of(protocol)];
  const double at = std::clamp(std::log2(std::max(bytes, 64.0) / 64), 0.0, 22.999);
  const auto below = static_cast<std::size_t>(at);
  const double above = at - static_cast<double>(below);
  return factors[below] * (1 - above) + factors[below + 1] * above;
}

/// A chain inside each node and a double binary tree between the nodes, up and down.
Way tree(const GroupLinks& links, Protocol protocol, double bytes) {
  const std::size_t p = index_of(protocol);
  Way way;
  way.latency_us =
      nccl::kBase.tree[p] +
      2 * ((links.per_node - 1) * (links.hop->tree[p] + links.extra_intra_us) +
           floor_log2(links.nodes) * inter_hop(links, nccl::kNetworkHop.tree, protocol));
  double bus = std::min(links.intra, 2 * links.tree_inter()) * nccl::kTree;
  if (protocol == Protocol::kLl) {
    bus = std::min(bus * nccl::kTreeLl, ll_max(links));
  } else if (protocol == Protocol::kLl128) {
    bus *= links.nodes > 1 ? nccl::kTreeLl128 : nccl::kTreeLl128OneNode;
  }
  way.bandwidth = bus / 2 * tree_correction(protocol, bytes);
  way.stages = 2 * (1 + floor_log2(links.nodes));
  return way;
}

/// The switch reduces what its g devices send and multicasts it back: each device sends and
/// receives the tensor once and its own g-th once more.
Way nvls(const GroupLinks& links) {
  Way way;
  if (links.nvls == 0) {
    return way;
  }
  way.latency_us = nccl::kNvlsLatency + links.extra_intra_us;
  way.bandwidth = links.nvls / (1 + 1 / links.per_node);
  way.stages = 2;
  if (links.nodes > 1) {
    const double levels = floor_log2(links.nodes);
    way.latency_us += 2 * levels * (nccl::kNvlsTreeNetworkHop + 2 * links.extra_inter_us);
    way.bandwidth = std::min(way.bandwidth, links.tree_inter());
    way.stages += 2 * levels;
  }
  return way;
}

/// Parallel aggregated trees: all-gather and reduce-scatter with one rank per node.
Way pat(const GroupLinks& links) {
  Way way;
  way.latency_us = nccl::kPatBase + links.ranks * nccl::kPatPerRank +
                   floor_log2(links.nodes) *
                       ((nccl::kPatNetworkHop + 2 * links.extra_inter_us) / nccl::kPatHopDivisor);
  way.bandwidth = links.inter * nccl::kPat * links.ranks / (links.ranks - 1);
  way.stages = 1;
  return way;
}

/// Messages of their own to every peer: an all-to-all, a gather or a scatter.
Way direct(const GroupLinks& links, Collective collective, Protocol protocol) {
  const std::size_t p = index_of(protocol);
  const double near = (links.per_node - 1) / links.ranks;
  const double far = (links.ranks - links.per_node) / links.ranks;
  const double senders = collective == Collective::kAllToAll ? links.per_node : 1;
  const double card =
      collective == Collective::kAllToAll ? links.inter : links.inter / links.per_node;
  const double seconds_per_byte =
      std::max(near / links.intra, links.nodes > 1 ? far * senders / card : 0.0);
  Way way;
  way.latency_us =
      nccl::kBase.ring[p] + (links.nodes > 1 ? inter_hop(links, nccl::kNetworkHop.ring, protocol)
                                             : links.hop->ring[p] + links.extra_intra_us);
  way.bandwidth = (protocol == Protocol::kLl ? nccl::kRingLl : 1) / seconds_per_byte;
  way.stages = 1;
  return way;
}

/// One pair of devices.
Way message(const GroupLinks& links, Protocol protocol) {
  const std::size_t p = index_of(protocol);
  Way way;
  way.latency_us =
      nccl::kBase.ring[p] + (links.nodes > 1 ? inter_hop(links, nccl::kNetworkHop.ring, protocol)
                                             : links.hop->ring[p] + links.extra_intra_us);
  way.bandwidth = links.ring() * (protocol == Protocol::kLl ? nccl::kRingLl : 1);
  way.stages = 1;
  return way;
}

/// Threads on cores that copy through memory, or a network of such hosts: a plain ring without
/// NCCL's latencies.
Way plain_ring(const ClusterSpec& cluster, const GroupLinks& links, Collective collective) {
  const double steps = ring_steps(collective, links.ranks);
  const double rounds = collective == Collective::kAllReduce ? 2 : 1;
  const double network_steps = links.nodes > 1 ? rounds * (links.nodes - 1) : 0;
  Way way;
  way.latency_us = ((steps - network_steps) * cluster.intra_node.latency_s +
                    network_steps * cluster.inter_node.latency_s) /
                   kMicro;
  way.bandwidth = links.ring() * links.ranks / steps;
  return way;
}

Way plain_direct(const ClusterSpec& cluster, const GroupLinks& links) {
  Way way = direct(links, Collective::kAllToAll, Protocol::kSimple);
  const double far = links.ranks - links.per_node;
  way.latency_us =
      ((links.per_node - 1) * cluster.intra_node.latency_s + far * cluster.inter_node.latency_s) /
      kMicro;
  way.stages = 0;
  return way;
}

bool uses_messages(Collective collective) {
  return collective == Collective::kAllToAll || collective == Collective::kGather ||
         collective == Collective::kScatter;
}

Way way_of(const GroupLinks& links,
           Collective collective,
           double bytes,
           Algorithm algorithm,
           Protocol protocol) {
  const bool simple = protocol == Protocol::kSimple;
  const bool all_reduce = collective == Collective::kAllReduce;
  if (protocol == Protocol::kNone || (protocol == Protocol::kLl128 && !links.ll128)) {
    return {};
  }
  switch (algorithm) {
    case Algorithm::kRing:
      return uses_messages(collective) ? Way{} : ring(links, collective, protocol, bytes);
    case Algorithm::kTree:
      return all_reduce ? tree(links, protocol, bytes) : Way{};
    case Algorithm::kNvls:
      return all_reduce && simple && links.nodes == 1 ? nvls(links) : Way{};
    case Algorithm::kNvlsTree:
      return all_reduce && simple && links.nodes > 1 ? nvls(links) : Way{};
    case Algorithm::kPat:
      return simple && links.nodes == links.ranks &&
                     (collective == Collective::kAllGather ||
                      collective == Collective::kReduceScatter)
                 ? pat(links)
                 : Way{};
    case Algorithm::kDirect: {
      const bool small = bytes <= nccl::kMessageLlBytes * links.ranks;
      return uses_messages(collective) && (simple || (small && protocol == Protocol::kLl))
                 ? direct(links, collective, protocol)
                 : Way{};
    }
    case Algorithm::kNone:
      break;
  }
  return {};
}

CommunicationCost priced(
    const GroupLinks& links, const Way& way, double bytes, Algorithm algorithm, Protocol protocol) {
  CommunicationCost cost;
  cost.algorithm = algorithm;
  cost.protocol = protocol;
  cost.bytes = bytes;
  cost.bandwidth = bytes > 0 ? way.bandwidth : 0;
  cost.latency_s = way.latency_us * kMicro;
  cost.seconds = cost.latency_s;
  if (bytes > 0 && way.bandwidth > 0) {
    const double stages = protocol == Protocol::kLl ? 0 : way.stages;
    cost.fill_s = std::min(bytes, stages * links.stage_bytes) / way.bandwidth;
    cost.seconds += bytes / way.bandwidth + cost.fill_s;
  }
  return cost;
}

CommunicationCost best_way(const GroupLinks& links, Collective collective, double bytes) {
  CommunicationCost best;
  best.seconds = kNever;
  for (const Algorithm algorithm : {Algorithm::kRing,
                                    Algorithm::kTree,
                                    Algorithm::kNvls,
                                    Algorithm::kNvlsTree,
                                    Algorithm::kPat,
                                    Algorithm::kDirect}) {
    for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
      const Way way = way_of(links, collective, bytes, algorithm, protocol);
      if (way.latency_us * kMicro < best.seconds) {
        const CommunicationCost cost = priced(links, way, bytes, algorithm, protocol);
        best = cost.seconds < best.seconds ? cost : best;
      }
    }
  }
  return best;
}

/// Bytes of the whole tensor; a barrier is an all-reduce of one element.
double tensor_bytes(Collective collective, double members, std::int64_t elements, DType dtype) {
  const auto size = static_cast<double>(size_of(dtype));
  if (collective == Collective::kBarrier) {
    return size;
  }
  const bool sharded =
      collective == Collective::kAllGather || collective == Collective::kReduceScatter;
  return static_cast<double>(elements) * size * (sharded ? members : 1);
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kNone:
      return "none";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kNvls:
      return "nvls";
    case Algorithm::kNvlsTree:
      return "nvls_tree";
    case Algorithm::kPat:
      return "pat";
    case Algorithm::kDirect:
      return "direct";
  }
  return "?";
}

std::string_view name_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::kNone:
      return "none";
    case Protocol::kLl:
      return "ll";
    case Protocol::kLl128:
      return "ll128";
    case Protocol::kSimple:
      return "simple";
  }
  return "?";
}

CommunicationCost collective_cost(const LinkCosts& costs,
                                  const GroupPlacement& placement,
                                  Collective collective,
                                  std::int64_t elements,
                                  DType dtype) {
  if (placement.members <= 1) {
    return {};
  }
  const double members = placement.members;
  const double bytes = tensor_bytes(collective, members, elements, dtype);
  const Collective kind = collective == Collective::kBarrier ? Collective::kAllReduce : collective;
  const ClusterSpec& cluster = costs.cluster;
  const GroupLinks links = links_of(costs, placement);
  CommunicationCost cost;
  if (cluster.intra_node.kind != LinkKind::kSharedMemory) {
    cost = best_way(links, kind, bytes);
  } else if (uses_messages(kind)) {
    cost = priced(links, plain_direct(cluster, links), bytes, Algorithm::kDirect, Protocol::kNone);
  } else {
    cost =
        priced(links, plain_ring(cluster, links, kind), bytes, Algorithm::kRing, Protocol::kNone);
  }
  cost.wire_bytes = bytes * (members - 1) / members * (kind == Collective::kAllReduce ? 2 : 1);
  return cost;
}

CommunicationCost collective_cost_by(const LinkCosts& costs,
                                     const GroupPlacement& placement,
                                     Collective collective,
                                     double bytes,
                                     Algorithm algorithm,
                                     Protocol protocol) {
  const GroupLinks links = links_of(costs, placement);
  return priced(
      links, way_of(links, collective, bytes, algorithm, protocol), bytes, algorithm, protocol);
}

CommunicationCost message_cost(const LinkCosts& costs,
                               const GroupPlacement& placement,
                               std::int64_t bytes) {
  if (placement.members <= 1) {
    return {};
  }
  const auto size = static_cast<double>(bytes);
  const ClusterSpec& cluster = costs.cluster;
  const GroupLinks links = links_of(costs, placement);
  CommunicationCost cost;
  if (cluster.intra_node.kind == LinkKind::kSharedMemory) {
    Way way;
    way.latency_us = (links.nodes > 1 ? cluster.inter_node : cluster.intra_node).latency_s / kMicro;
    way.bandwidth = links.ring();
    cost = priced(links, way, size, Algorithm::kDirect, Protocol::kNone);
  } else {
    const Protocol protocol = size <= nccl::kMessageLlBytes ? Protocol::kLl : Protocol::kSimple;
    cost = priced(links, message(links, protocol), size, Algorithm::kDirect, protocol);
  }
  cost.wire_bytes = size / 2;
  return cost;
}

double compute_speed_beside(const ClusterSpec& cluster, const GroupPlacement& placement) {
  if (placement.members > 1 && cluster.device.speed_beside_communication > 0) {
    return cluster.device.speed_beside_communication;
  }
  if (placement.members <= 1 || cluster.intra_node.kind == LinkKind::kSharedMemory) {
    return 1;
  }
  // A channel is a block that holds one multiprocessor; small devices open fewer channels.
  constexpr double kMostHeld = 0.25;
  const auto multiprocessors = static_cast<double>(cluster.device.multiprocessors);
  return 1 - std::min(kMostHeld, nccl::kChannels / multiprocessors);
}

std::string explain(const CommunicationCost& cost) {
  constexpr double kMega = 1e6;
  if (cost.algorithm == Algorithm::kNone) {
    return "nothing to send";
  }
  std::string text = fmt::format("{}", name_of(cost.algorithm));
  if (cost.protocol != Protocol::kNone) {
    text += fmt::format(", {}", name_of(cost.protocol));
  }
  text += fmt::format(": {:.4g} us", cost.latency_s / kMicro);
  if (cost.bandwidth > 0) {
    text += fmt::format(" + {:.4g} MB / {:.4g} GB/s", cost.bytes / kMega, cost.bandwidth / kGiga);
  }
  if (cost.fill_s > 0) {
    text += fmt::format(" + {:.4g} us of fill", cost.fill_s / kMicro);
  }
  return text + fmt::format(" = {:.4g} us", cost.seconds / kMicro);
}

}  // namespace lockstep::sim
