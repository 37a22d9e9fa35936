// Simulate: plan and machine in, trace out. The facade of the event simulation; it knows
// operations, never a strategy.
//
//   const Simulation run = sim::simulate(plan, scenario.cluster);
//   const Report report = make_report(plan, run.trace, facts);
#pragma once

#include <cstdint>

#include "core/cluster.h"
#include "core/plan.h"
#include "core/stop_check.h"
#include "core/trace.h"
#include "simulator/cost_model.h"
#include "simulator/what_if.h"

namespace lockstep::sim {

struct SimulationOptions {
  SectionKind section = SectionKind::kStep;
  int iteration = -1;  ///< 0-based step whose variant runs; -1: the one that repeats
  bool fold = true;    ///< equal ranks share one track; false: every rank is simulated
  WhatIf what_if;
  StopCheck stop_check = {};
};

struct Simulation {
  Trace trace;
  std::int64_t operations = 0;  ///< simulated, alloc and free included, each track once
  std::uint64_t events = 0;
};

/// One run of a section from an idle machine. Deterministic. UsageError when a what-if names a rank
/// that does not exist or a factor that is not positive; TimeoutError when the plan deadlocks; a
/// failed rank is no error but ends the trace with its stalls.
Simulation simulate(const Plan& plan,
                    const ClusterSpec& cluster,
                    const SimulationOptions& options = {});

/// The same at other prices; of `cluster` only the number of devices per node counts.
Simulation simulate(const Plan& plan,
                    const ClusterSpec& cluster,
                    const CostModel& costs,
                    const SimulationOptions& options);

}  // namespace lockstep::sim
