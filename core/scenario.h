// Scenario: model + cluster + training + strategy: what people save, share and ask about.
#pragma once

#include <cstdint>
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

/// Fills what depends on other sections: seq_len 0 from the model, accumulate 1 from global_batch,
/// nodes 1 from the world size. What was set to anything else is left as it is. Idempotent; works
/// on any values, so that validate() can report all problems of the resolved scenario at once.
Scenario resolved(Scenario scenario);

/// Every problem of the whole scenario: each section's own, and the legality table of combinations
/// (which strategies may be combined, divisibility, batch arithmetic), each with its reason.
Problems validate(const Scenario& scenario);

/// BadInputError with all problems on one line, unless there are none.
void require_valid(const Scenario& scenario);

/// Samples of one optimizer step over all ranks, of a resolved scenario.
std::int64_t samples_per_step(const Scenario& scenario);

}  // namespace lockstep
