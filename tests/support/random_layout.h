// Random legal layouts of real models on real clusters: what a search goes through.
//
//     std::mt19937_64 random(test_seed());
//     const Scenario scenario = random_layout(random);
#pragma once

#include <random>

#include "core/scenario.h"

namespace lockstep::test {

/// Resolved and legal; at most 512 devices and some 100,000 operations.
Scenario random_layout(std::mt19937_64& random);

}  // namespace lockstep::test
