// ComputeCost: seconds of one compute or host operation on one device.
//
//   time = max(FLOPs / (peak x efficiency(shape)), bytes / (bandwidth x efficiency(bytes)))
//          + launch floor of the kernel
//
// The efficiencies depend on the shape alone: tiles and waves for matrix products, bytes in flight
// for the rest. Their constants, each with its meaning and source, are in simulator/efficiency.h.
#pragma once

#include "core/cluster.h"
#include "core/plan.h"
#include "simulator/efficiency.h"

namespace lockstep::sim {

struct ComputeCost {
  double seconds = 0;
  double flops = 0;
  double bytes = 0;
  double efficiency = 0;  ///< of the binding resource
  bool compute_bound = false;
};

/// `tf32`: fp32 matrix products run on the tensor cores (Plan::tf32).
ComputeCost compute_cost(const DeviceSpec& device,
                         Work work,
                         const Shape& shape,
                         DType dtype,
                         bool tf32,
                         const Efficiency& efficiency = kEfficiency);

}  // namespace lockstep::sim
