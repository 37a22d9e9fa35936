#include "visualizer/app/strategy_table.h"

#include <exception>
#include <utility>

#include "core/error.h"
#include "core/io/scenario_io.h"
#include "core/strategy_words.h"
#include "simulator/compare.h"

namespace lockstep::app {
namespace {

constexpr std::size_t kMostKnown = 64;

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

StrategyTable::StrategyTable(Scenario scenario,
                             std::uint64_t generation,
                             const StrategyTable* before)
    : scenario_(std::move(scenario)),
      base_(with_shared_batch(scenario_, devices_of(scenario_))),
      devices_(devices_of(scenario_)),
      generation_(generation),
      words_(usual_strategies(base_, devices_)) {
  words_.insert(words_.begin(), kOwnStrategy);
  outcomes_.reserve(words_.size());
  if (before != nullptr) {
    const std::lock_guard lock(before->mutex_);
    known_ = before->kept_;
    for (const auto& [key, outcome] : before->known_) {  // where it did not come to an end
      if (known_.size() < kMostKnown) {
        known_.emplace(key, outcome);
      }
    }
  }
}

std::vector<StrategyOutcome> StrategyTable::outcomes() const {
  const std::lock_guard lock(mutex_);
  return outcomes_;
}

/// The name is no part of what is computed.
std::string StrategyTable::key_of(Scenario scenario) {
  scenario.name.clear();
  return scenario_text(scenario);
}

StrategyOutcome StrategyTable::outcome_of(const std::string& words,
                                          const Scenario& scenario,
                                          const StopCheck& stop_check) {
  const std::string key = key_of(scenario);
  StrategyOutcome outcome;
  const auto known = known_.find(key);
  const auto kept = kept_.find(key);
  if (known != known_.end() || kept != kept_.end()) {
    outcome = known != known_.end() ? known->second : kept->second;
    outcome.words = words;
  } else {
    outcome = sim::compare(words, scenario, true, stop_check);
    ++simulated_;
  }
  const std::lock_guard lock(mutex_);
  kept_.emplace(key, outcome);
  return outcome;
}

bool StrategyTable::step(const StopCheck& stop_check) {
  const std::string& words = words_[done_];
  StrategyOutcome outcome;
  try {
    const bool own = done_ == 0;
    outcome =
        outcome_of(words, own ? scenario_ : with_strategy(base_, words, devices_), stop_check);
  } catch (const InterruptedError&) {
    throw;
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
