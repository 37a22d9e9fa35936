// The same training with its gradients in one bucket and in many, over links that are slow on
// purpose: what the simulator says, and what a run on this machine shows.
#pragma once

#include <string>

#include "core/cluster.h"
#include "core/plan.h"
#include "core/report.h"
#include "core/scenario.h"

namespace lockstep::test {

/// What the gradients' transfer takes: more than a busy machine's whims, less than the backward
/// pass.
inline constexpr double kThrottledTransferS = 0.06;
inline constexpr double kOneBucketMib = 1000;
inline constexpr double kBucketPerLayerMib = 0.25;

/// This machine's kernels, measured for a moment, and the throttle's links.
ClusterSpec throttled_machine();

/// DDP on two ranks with buckets of this size.
class ThrottledRun {
 public:
  ThrottledRun(double bucket_mib, const ClusterSpec& cluster);

  /// Some more steps; the best of all steps counts. What else the machine does makes them longer,
  /// never shorter.
  void measure();

  double predicted_step_s = 0;
  double predicted_exposed_s = 0;  ///< transfers that hide behind no computation
  double step_s = 1e9;
  double exposed_s = 1e9;

  /// All four, on one line.
  std::string text() const;

 private:
  Scenario scenario_;
  Plan plan_;
};

}  // namespace lockstep::test
