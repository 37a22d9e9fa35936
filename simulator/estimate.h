// Estimate: seconds of a step in closed form, from what a plan amounts to without its order.
//
// It prices a PlanSummary with the same costs as the event simulation and knows operations,
// streams and phases, never a strategy. What the order would decide is taken as an ideal overlap:
//
//   body      compute of forward, backward and recomputation, and what communicates on the tensor
//             stream: forward in full; backward as far as weight gradients do not hide it
//   data      what communicates for data parallelism beside the body: the part that does not fit
//             behind the compute of its own micro-batch, and the last message
//   pipeline  the body of the slowest stage, stretched as the schedule is under unit costs, and the
//             messages of one way through the stages and back
//   tail      clipping, optimizer and what communicates there, one after the other
//   host      a step is never shorter than its launches
//
// `lockstep search` ranks by it and simulates the best; the difference is printed. A test holds the
// median difference to 5 %.
#pragma once

#include "core/planner/planner.h"
#include "simulator/cost_model.h"

namespace lockstep::sim {

/// Where the seconds of the slowest stage go; they add up to step_s.
struct Estimate {
  double step_s = 0;
  double compute_s = 0;
  double tensor_s = 0;    ///< exposed
  double data_s = 0;      ///< exposed
  double pipeline_s = 0;  ///< bubble and messages
  double tail_s = 0;      ///< clipping and optimizer
  double host_s = 0;      ///< what the launches take longer than all that
};

/// Keeps references.
class Estimator {
 public:
  Estimator(const ClusterSpec& cluster, bool tf32, const Efficiency& efficiency = kEfficiency)
      : costs_(cluster, tf32, efficiency), cluster_(cluster) {}

  Estimate estimate(const PlanSummary& summary) const;

 private:
  struct ClassTimes;
  class Groups;
  ClassTimes times_of(const PlanSummary& summary, std::size_t index) const;

  ClusterCosts costs_;
  const ClusterSpec& cluster_;
};

}  // namespace lockstep::sim
