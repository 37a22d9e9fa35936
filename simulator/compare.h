// Compare: one strategy of several, planned, counted and simulated; what is wrong with it comes
// back in words, so that a table of strategies is whole.
//
//   const StrategyOutcome outcome = sim::compare("fsdp", scenario);
#pragma once

#include <string>

#include "core/scenario.h"
#include "core/stop_check.h"
#include "core/strategy_outcome.h"

namespace lockstep::sim {

/// `scenario` is resolved but need not be legal. `named`: the memory report names every buffer at
/// the peak, with its formula. What the stop check throws as InterruptedError goes through.
StrategyOutcome compare(const std::string& words,
                        const Scenario& scenario,
                        bool named = false,
                        const StopCheck& stop_check = {});

}  // namespace lockstep::sim
