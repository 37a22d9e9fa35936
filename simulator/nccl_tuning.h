// NcclTuning: the tables by which NCCL predicts its own times, as data.
//
// Facts of src/graph/tuning.cc of NCCL 2.28 (latencies in its units, microseconds; bandwidths in
// 10^9 byte/s), the topology of one machine that NCCL's search would find (DGX-1V), and the sizes
// at which point-to-point messages change their protocol. How they are put together is in
// simulator/communication_cost.cpp.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep::sim {

enum class Algorithm : std::uint8_t { kNone, kRing, kTree, kNvls, kNvlsTree, kPat, kDirect };
enum class Protocol : std::uint8_t { kNone, kLl, kLl128, kSimple };

namespace nccl {

/// What NCCL tells apart by compute capability 7.0, 8.0, 9.0, 10.0.
enum class Generation : std::uint8_t { kVolta, kAmpere, kHopper, kBlackwell };

/// Values by protocol: LL, LL128, Simple.
using ByProtocol = std::array<double, 3>;
/// Values by number of nodes: 1, 2, more.
using ByNodes = std::array<double, 3>;

struct Latencies {
  ByProtocol ring{};
  ByProtocol tree{};
};

// baseLatencies
inline constexpr Latencies kBase{{6.6, 14.0, 8.4}, {6.8, 14.0, 8.4}};
// hwLatencies, of one hop
inline constexpr Latencies kNvlinkHop{{0.6, 1.9, 3.4}, {0.6, 1.25, 4.0}};
inline constexpr Latencies kPcieHop{{1.0, 2.5, 5.7}, {1.0, 1.9, 4.0}};
inline constexpr Latencies kNetworkHop{{2.7, 4.0, 14.0}, {5.0, 8.5, 14.0}};
inline constexpr double kNvlsLatency = 25;
inline constexpr double kNvlsTreeNetworkHop = 20.9;
inline constexpr double kPatBase = 8;
inline constexpr double kPatNetworkHop = 14;
inline constexpr double kPatHopDivisor = 3.5;
inline constexpr double kPatPerRank = 2.8;

/// What the host spends to post one message to a network card (getNetOverhead; Simple posts three).
inline constexpr double kNetOverhead = 1;

/// llMaxBws, one node: by generation.
inline constexpr std::array<double, 4> kLlMaxOneNode{39.0, 87.7, 141.0, 282.0};
/// llMaxBws, several nodes: by their number, with Intel hosts (AMD: 22.5 and 19.0).
inline constexpr ByNodes kLlMaxIntel{39.0, 39.0, 20.4};

inline constexpr double kRingLl = 0.5;      ///< every 4 bytes of data carry 4 of flag
inline constexpr double kRingLl128 = 0.92;  ///< of 128 bytes 120 are data, and some more is lost
inline constexpr double kTree = 0.92;
inline constexpr double kTreeLl = 1.0 / 3.8;
inline constexpr double kTreeLl128OneNode = 7.0 / 9.0;
inline constexpr double kTreeLl128 = 120.0 / 128.0;
inline constexpr double kPat = 0.75;

/// "Plateau effect of ring": latency of Simple rings over several nodes; before Ampere and since.
inline constexpr double kPlateauVolta = 1.9;
inline constexpr double kPlateau = 1.4;
inline constexpr double kPlateauBytes = 64;  ///< per channel and rank, from where it counts
inline constexpr double kChannels = 16;      ///< of a communicator, as opened on an NVSwitch node

/// treeCorrectionFactor: by protocol, then by floor(log2(bytes / 64)), 64 B to 512 MiB.
inline constexpr std::array<std::array<double, 24>, 3> kTreeCorrection{
    {{1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6,  .5,
      .4,  .4,  .5,  .6,  .7, .8, .9, 1., 1., 1., 1.0, 1.0},
     {1.0, 1.0, 1.0, 1.0, 1., .9, .8, .8, .8, .7, .6, .6,
      .6,  .6,  .6,  .6,  .8, .9, .9, .9, .9, 1., 1., 1.0},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
      .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}}};

/// Devices of one host at most; more in a node are an NVLink domain of several hosts, the trays of
/// an NVL72 rack, with this many each.
inline constexpr int kLargestHost = 16;
inline constexpr int kDevicesPerTray = 4;

/// NCCL_P2P_LL_THRESHOLD: messages up to here go by LL.
inline constexpr double kMessageLlBytes = 16384;

/// DGX-1V joins its eight devices by a hybrid cube mesh of six links each (DGX-1 white paper,
/// figure 4). Links from the worst-connected of the first n devices to the others of them, for
/// n = 0..8: a ring can use as many. Equals what NCCL reaches on it: 22.6, 85, 87 and 136 GB/s for
/// n = 2, 4, 7 and 8 at 25 GB/s a link.
inline constexpr std::array<double, 9> kCubeMeshLinks{6, 6, 1, 2, 4, 2, 3, 4, 6};
inline constexpr double kCubeMeshDegree = 6;

}  // namespace nccl
}  // namespace lockstep::sim
