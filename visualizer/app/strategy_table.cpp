#include "visualizer/app/strategy_table.h"

#include <exception>
#include <utility>

#include "core/strategy_words.h"
#include "simulator/compare.h"

namespace lockstep::app {
namespace {

std::int64_t devices_of(const Scenario& scenario) {
  const std::int64_t used = scenario.strategy.world_size();
  return used > 1 ? used : scenario.cluster.devices();
}

}  // namespace

Scenario with_usual_strategy(const Scenario& scenario, const std::string& words) {
  const std::int64_t devices = devices_of(scenario);
  Scenario result = with_shared_batch(scenario, devices);
  const Scenario under = with_strategy(result, words, devices);
  result.strategy = under.strategy;
  result.training.accumulate = 1;  // follows from the global batch
  return result;
}

StrategyTable::StrategyTable(Scenario scenario, std::uint64_t generation)
    : scenario_(std::move(scenario)),
      base_(with_shared_batch(scenario_, devices_of(scenario_))),
      devices_(devices_of(scenario_)),
      generation_(generation),
      words_(usual_strategies(base_, devices_)) {
  words_.insert(words_.begin(), kOwnStrategy);
  outcomes_.reserve(words_.size());
}

std::vector<StrategyOutcome> StrategyTable::outcomes() const {
  const std::lock_guard lock(mutex_);
  return outcomes_;
}

bool StrategyTable::step() {
  const std::string& words = words_[done_];
  StrategyOutcome outcome;
  try {
    const bool own = done_ == 0;
    outcome = sim::compare(words, own ? scenario_ : with_strategy(base_, words, devices_), true);
  } catch (const std::exception& error) {
    outcome = {};
    outcome.words = words;
    outcome.refused = error.what();
  }
  const std::lock_guard lock(mutex_);
  outcomes_.push_back(std::move(outcome));
  return ++done_ < words_.size();
}

}  // namespace lockstep::app
