#include "visualizer/models/budget.h"

#include <random>

#include "core/planner/planner.h"
#include "core/strategy_words.h"
#include "tests/support/catch.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scenarios.h"
#include "visualizer/models/budget_text.h"

namespace lockstep::view {
namespace {

using Catch::Matchers::ContainsSubstring;

StrategyOutcome outcome_of(const std::string& words, std::mt19937_64& random) {
  Scenario base = test::tiny_gpt();
  base.training.global_batch = 8;
  const Scenario scenario = with_strategy(base, words, 2);
  const Plan plan = make_plan(scenario, {false, false});
  const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
  StrategyOutcome outcome;
  outcome.words = words;
  outcome.report = make_report(plan, trace, report_facts(scenario));
  outcome.memory = memory_report(scenario, {.rows = true, .plan = &plan});
  return outcome;
}

TEST_CASE("budget: segments of a bar follow one another and add up to the report's figures") {
  std::mt19937_64 random(1);
  std::vector<StrategyOutcome> outcomes;
  for (const char* words : {"ddp", "zero1", "zero2", "zero3", "fsdp", "zero1,pp=2"}) {
    outcomes.push_back(outcome_of(words, random));
  }
  const Budget budget(outcomes);
  for (std::size_t row = 0; row < outcomes.size(); ++row) {
    INFO(outcomes[row].words);
    const MemoryReport& memory = outcomes[row].memory;
    const std::vector<BudgetBar> bars = budget.bars(row);
    REQUIRE(bars.size() == memory.ranks.size());
    for (std::size_t i = 0; i < bars.size(); ++i) {
      std::int64_t end = 0;
      std::int64_t point = 0;
      for (const BudgetSegment& it : bars[i].segments) {
        REQUIRE(it.begin_bytes == end);
        end = it.end_bytes;
        point += it.margin ? 0 : it.bytes();
        std::int64_t terms = 0;
        for (const MemoryTerm& term : it.terms) {
          terms += term.bytes;
        }
        CHECK(terms == it.bytes());
      }
      CHECK(point == memory.ranks[i].peak_bytes());
      CHECK(end == memory.ranks[i].upper_bound_bytes());
    }
    CHECK(budget.rows()[row].step_s == outcomes[row].report.step_time_s());
    CHECK(budget.rows()[row].tokens_per_s == outcomes[row].report.tokens_per_s());
    CHECK(budget.rows()[row].bubble == outcomes[row].report.bubble_fraction());
    CHECK(budget.rows()[row].peak_bytes == memory.worst().peak_bytes());
  }
}

TEST_CASE("budget: the fastest that fits is named, and what cannot be says why") {
  std::mt19937_64 random(1);
  std::vector<StrategyOutcome> outcomes{
      outcome_of("ddp", random), outcome_of("zero1", random), outcome_of("fsdp", random)};
  outcomes[0].report.step_time = 100;
  outcomes[1].report.step_time = 50;
  outcomes[2].report.step_time = 70;
  outcomes[1].memory.device_bytes = 1;  // too small
  outcomes.emplace_back();
  outcomes.back().words = "ddp,tp=7";
  outcomes.back().refused = "7 does not divide it";
  const Budget budget(outcomes);
  REQUIRE(budget.fastest());
  CHECK(*budget.fastest() == 2);
  CHECK_THAT(budget.rows()[1].note, ContainsSubstring("too much"));
  CHECK(budget.rows()[3].refused);
  CHECK(budget.bars(3).empty());
  const std::string text = budget_text(budget, {80, false});
  CHECK_THAT(text, ContainsSubstring("ddp,tp=7: 7 does not divide it"));
  CHECK_THAT(text, ContainsSubstring("fastest that fits"));
}

}  // namespace
}  // namespace lockstep::view
