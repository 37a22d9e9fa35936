// StrategyWords: a strategy in one argument, as tables of strategies write it.
//
//     zero1,tp=2,sp,pp=4,schedule=interleaved,chunks=2
//
// Words: a data-parallel kind, `sp`, and KEY=VALUE with the short names of the scenario flags (tp,
// pp, dp, schedule, chunks, micro-batch, recompute, flavour) or any key of the scenario. What is
// not said stays as in the scenario that it changes; dp is the devices that tp and pp leave.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario.h"

namespace lockstep {

/// `base` under the strategy that `words` describe on `devices` devices; not validated. UsageError
/// for a word that means nothing.
Scenario with_strategy(const Scenario& base, std::string_view words, std::int64_t devices);

/// `base` with a batch that all strategies on `devices` devices can share: four micro-batches per
/// device unless it says.
Scenario with_shared_batch(Scenario base, std::int64_t devices);

/// Strategies for the model of `base` that differ as much as they can on so many devices.
std::vector<std::string> usual_strategies(const Scenario& base, std::int64_t devices);

}  // namespace lockstep
