// Scenarios of sizes that nothing divides, on 8 and on 3 ranks: what a strategy gets wrong about
// padding, short shards, uneven stages and grouped heads shows here. 4 layers, 6 heads on 2
// key-value heads (Llama form), hidden 50, vocabulary 257, 3 or 4 micro-batches, clipping that
// clips.
#pragma once

#include <string>
#include <vector>

#include "tests/support/scenarios.h"

namespace lockstep::test {

/// How a model is trained, whoever shares the work: forms of the model, optimizers, recomputation,
/// means of the loss; one rank, fp64.
std::vector<NamedScenario> awkward_trainings();

struct AwkwardScenario {
  std::string name;
  Scenario scenario;  ///< resolved and legal
  bool usual = true;  ///< stands for its kind; the others are variants of it
};

/// `training` by every strategy that is legal for it on 8 ranks (2 pipeline x 2 data x 2 tensor
/// where the data-parallel kind goes with a pipeline) and on 3.
std::vector<AwkwardScenario> awkward_strategies(const NamedScenario& training);

}  // namespace lockstep::test
