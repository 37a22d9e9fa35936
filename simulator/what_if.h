// WhatIf: how the machine of a simulation differs from the one that the cluster describes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::sim {

/// Something about one rank takes `factor` times as long.
struct RankFactor {
  int rank = 0;
  double factor = 1;
};

/// The rank stops issuing at this time and says nothing: a dead process, a hung device.
struct FailedRank {
  int rank = 0;
  double at_s = 0;
};

struct WhatIf {
  std::vector<RankFactor> slow_ranks;  ///< all compute of these ranks
  std::vector<RankFactor> skewed;      ///< forward, backward and recompute: more data there
  std::vector<RankFactor> slow_links;  ///< every group and message that these ranks take part in
  double jitter = 0;       ///< sigma of the log-normal factor on every compute operation
  std::uint64_t seed = 1;  ///< of the jitter
  std::optional<FailedRank> failed;
  double timeout_s = 600;  ///< after so long a wait for the failed rank ends the run
  /// CUDA_DEVICE_MAX_CONNECTIONS=1: a device takes up operations in the order in which the host
  /// issued them, whatever their streams; one that waits holds all that were issued after it.
  bool single_connection = false;
  bool assume_overflow = false;  ///< guards are set: the optimizer's operations are skipped

  bool differs_by_rank() const { return jitter > 0; }
};

}  // namespace lockstep::sim
