// Scenario: model + cluster + training + strategy: what people save, share and ask about.
#pragma once

#include <string>

#include "core/cluster.h"
#include "core/model.h"
#include "core/problems.h"
#include "core/strategy.h"
#include "core/training.h"

namespace lockstep {

inline constexpr int kScenarioVersion = 1;

struct Scenario {
  std::string name;
  ModelSpec model;
  ClusterSpec cluster;
  TrainingSpec training;
  StrategySpec strategy;
};

/// Fills what depends on other sections: seq_len from the model, accumulate from global_batch,
/// nodes from the world size when the cluster is too small by default. Idempotent.
Scenario resolved(Scenario scenario);

/// Every problem of the whole scenario: each section's own, and the legality table of combinations
/// (which strategies may be combined, divisibility, batch arithmetic), each with its reason.
Problems validate(const Scenario& scenario);

}  // namespace lockstep
