// Random legal scenarios, small enough to plan and to check by value in milliseconds: every model
// form, data-parallel kind and flavour, pipeline schedule, precision, optimizer and option that
// validate() lets through, with sizes that nothing divides.
//
//     std::mt19937_64 random(test_seed());
//     const Scenario scenario = random_scenario(random);
#pragma once

#include <random>

#include "core/scenario.h"

namespace lockstep::test {

/// Resolved and legal: drawn until validate() finds nothing. At most 16 ranks, of one in fifty 64.
Scenario random_scenario(std::mt19937_64& random);

}  // namespace lockstep::test
