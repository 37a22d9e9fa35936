// Small scenarios that tests start from, and one of every strategy that Lockstep has.
#pragma once

#include <string>
#include <vector>

#include "core/scenario.h"

namespace lockstep::test {

/// A GPT-2 in the small: 2 blocks, sizes that nothing divides, fp32, one rank, no clipping.
Scenario tiny_gpt();
/// Llama in the small: RMSNorm, SwiGLU, rope, grouped-query attention, no biases, untied.
Scenario tiny_llama();
/// Linear layers of several widths, if wished with batch normalisation between them.
Scenario tiny_mlp(MlpNormKind norm = MlpNormKind::kNone);

struct NamedScenario {
  std::string name;
  Scenario scenario;  ///< resolved and legal
};

/// Every data-parallel kind, flavour and variant, tensor parallelism, every pipeline schedule and
/// what changes a step's communication (accumulation, clipping, loss scaling, recomputation), alone
/// and in usual combinations.
std::vector<NamedScenario> one_of_each();

/// What differs from the default scenario, on one line: for messages of failed tests.
std::string text_of(const Scenario& scenario);

}  // namespace lockstep::test
