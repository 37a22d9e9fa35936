// CostModel: what the engine asks for prices. ClusterCosts answers from a cluster's figures by
// compute_cost.h and communication_cost.h; tests answer with whole numbers.
#pragma once

#include <cstdint>

#include "core/cluster.h"
#include "core/plan.h"
#include "simulator/efficiency.h"
#include "simulator/placement.h"

namespace lockstep::sim {

/// What operations of equal price agree in.
struct PriceKey {
  OperationKind kind = OperationKind::kCompute;
  Work work = Work::kNone;
  Collective collective = Collective::kAllReduce;
  DType dtype = DType::kFp32;
  Shape shape;
  std::int64_t elements = 0;
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  /// Seconds of a compute, copy or host operation.
  virtual double seconds(const PriceKey& key) const = 0;
  /// Seconds of a collective or a message over a group that lies so.
  virtual double seconds(const PriceKey& key, const GroupPlacement& placement) const = 0;
  /// Speed of compute while such a group communicates, in (0, 1].
  virtual double compute_speed_beside(const GroupPlacement& placement) const = 0;
  /// Host seconds to issue one operation.
  virtual double launch_overhead() const = 0;
};

class ClusterCosts : public CostModel {
 public:
  /// Keeps references. `tf32` as Plan::tf32.
  ClusterCosts(const ClusterSpec& cluster, bool tf32, const Efficiency& efficiency = kEfficiency)
      : cluster_(cluster), efficiency_(efficiency), tf32_(tf32) {}

  double seconds(const PriceKey& key) const override;
  double seconds(const PriceKey& key, const GroupPlacement& placement) const override;
  double compute_speed_beside(const GroupPlacement& placement) const override;
  double launch_overhead() const override { return cluster_.device.launch_overhead_s; }

 private:
  const ClusterSpec& cluster_;
  const Efficiency& efficiency_;
  bool tf32_;
};

}  // namespace lockstep::sim
