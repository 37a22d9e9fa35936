// StrategyTable: the usual strategies for a scenario's model and devices, planned and simulated one
// after the other on the worker; the table fills while one looks. Rows whose scenario is the same
// as in the table before are taken from it: an edit of the strategy changes the first row only.
//
//     table = std::make_shared<StrategyTable>(document->scenario, session.revision(), table.get());
//     session.add(table);
//     if (table->done() != seen) { outcomes = table->outcomes(); ... }
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/scenario.h"
#include "core/strategy_outcome.h"
#include "visualizer/app/worker.h"

namespace lockstep::app {

/// What the first row is called: the scenario's own strategy.
inline constexpr const char* kOwnStrategy = "current";

/// `scenario` with the strategy that `words` describe, on as many devices as it uses now (all of
/// the cluster where it uses one), with the batch that all strategies share. Not resolved: what
/// follows from others is left to follow.
Scenario with_usual_strategy(const Scenario& scenario, const std::string& words);

class StrategyTable : public Errand {
 public:
  /// `scenario` is resolved and legal; `generation` tells tables apart; `before` may be null.
  StrategyTable(Scenario scenario, std::uint64_t generation, const StrategyTable* before = nullptr);

  std::uint64_t generation() const { return generation_; }
  const std::vector<std::string>& words() const { return words_; }
  /// How many of the words are finished, from the front.
  std::size_t done() const { return done_; }
  bool finished() const { return done() == words_.size(); }
  std::vector<StrategyOutcome> outcomes() const;

  /// How many rows were planned and simulated here, and not taken from the table before.
  std::size_t simulated() const { return simulated_; }

  bool step(const StopCheck& stop_check) override;

 private:
  static std::string key_of(Scenario scenario);
  StrategyOutcome outcome_of(const std::string& words,
                             const Scenario& scenario,
                             const StopCheck& stop_check);

  Scenario scenario_;
  Scenario base_;  ///< with the shared batch
  std::int64_t devices_;
  std::uint64_t generation_;
  std::vector<std::string> words_;
  mutable std::mutex mutex_;
  std::vector<StrategyOutcome> outcomes_;
  // By scenario, as text.
  std::map<std::string, StrategyOutcome> known_;  ///< of the table before
  std::map<std::string, StrategyOutcome> kept_;   ///< of this one
  std::atomic<std::size_t> done_ = 0;
  std::atomic<std::size_t> simulated_ = 0;
};

}  // namespace lockstep::app
