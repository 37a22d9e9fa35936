// A strategy written by hand passes the checks that every plan must pass, its mutants are caught,
// and what it needed is a closed list of works.
#include <algorithm>
#include <string>
#include <vector>

#include "core/check/plan_check.h"
#include "core/check/value_check.h"
#include "core/names.h"
#include "core/plan_text.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/hand_written.h"
#include "tests/support/mutants.h"
#include "tests/support/one_rank.h"
#include "tests/support/scenarios.h"
#include "tests/support/sequence_text.h"

namespace lockstep {
namespace {

constexpr int kWorks = static_cast<int>(Work::kCommit) + 1;
static_assert(kWorks <= 80, "works are mathematical or memory steps: a closed list");

Scenario scenario_of(const Scenario& base, std::int64_t data, std::int64_t tensor) {
  Scenario scenario = base;
  scenario.strategy.data.degree = data;
  scenario.strategy.tensor.degree = tensor;
  scenario.training.accumulate = 2;
  scenario.training.clip_norm = 1;
  scenario = resolved(scenario);
  require_valid(scenario);
  return scenario;
}

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all = {
      scenario_of(test::tiny_gpt(), 2, 3),
      scenario_of(test::tiny_llama(), 3, 2),
      scenario_of(test::tiny_mlp(), 4, 1),
      scenario_of(test::tiny_gpt(), 1, 2),
  };
  Scenario sequence_parallel = all.front();
  sequence_parallel.strategy.tensor.sequence_parallel = true;
  sequence_parallel.training.precision = Precision::kBf16;
  sequence_parallel.training.recompute = Recompute::kFull;
  all.push_back(sequence_parallel);
  return all;
}

}  // namespace

TEST_CASE("a strategy written by hand has no fault and computes what one rank computes") {
  for (const Scenario& scenario : scenarios()) {
    INFO(test::text_of(scenario));
    const Plan plan = test::hand_written_plan(scenario);
    CHECK(check_plan(plan).text() == "no problems");
    CHECK(value_check(plan, make_plan(test::one_rank(scenario))).text() == "values agree");
  }
}

TEST_CASE("its gradients meet on the last data-parallel rank and come from there") {
  const Scenario scenario = scenario_of(test::tiny_mlp(), 3, 1);
  const Plan plan = test::hand_written_plan(scenario);
  test::SequenceOptions options;
  options.waits = test::SequenceOptions::Waits::kNone;
  std::string text;
  for (const std::string& word : test::sequence_of(plan, plan.step(0), 0, options).steps) {
    text += word + " ";
  }
  CHECK(text ==
        "F(B0) F(B1) F(B2) B(B2) B(B1) B(B0) F(B0) F(B1) F(B2) B(B2) B(B1) B(B0) "
        "RD2(layers.0.linear.weight)[128]:avg BC2(layers.0.linear.weight)[128] "
        "RD2(layers.0.linear.bias)[16]:avg BC2(layers.0.linear.bias)[16] "
        "RD2(layers.1.linear.weight)[192]:avg BC2(layers.1.linear.weight)[192] "
        "RD2(layers.1.linear.bias)[12]:avg BC2(layers.1.linear.bias)[12] "
        "RD2(layers.2.linear.weight)[60]:avg BC2(layers.2.linear.weight)[60] "
        "RD2(layers.2.linear.bias)[5]:avg BC2(layers.2.linear.bias)[5] "
        "squares coefficient clip step ");
}

TEST_CASE("no mutant of the strategy written by hand is missed") {
  const Scenario scenario = scenario_of(test::tiny_mlp(), 3, 1);
  const Plan plan = test::hand_written_plan(scenario);
  const Plan one_rank = make_plan(test::one_rank(scenario));
  const ValueFacts facts = value_facts(plan);
  ValueReference reference(one_rank, facts.setting);
  const std::size_t idle = value_check(plan, reference, facts).idle.size();
  int tried = 0;
  for (std::size_t s = 0; s < plan.sections.size(); ++s) {
    const std::vector<Operation>& operations = plan.sections[s].programs.front().operations;
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      if (!test::is_bookkeeping(operations[i])) {
        continue;
      }
      const int section = static_cast<int>(s);
      for (const bool twice : {false, true}) {
        const Plan mutant = twice ? test::duplicate_operation(plan, 0, section, i)
                                  : test::remove_operation(plan, 0, section, i);
        ++tried;
        const ValueReport report = value_check(mutant, reference, facts);
        const bool caught =
            !check_plan(mutant).empty() || !report.ok() || report.idle.size() > idle;
        INFO((twice ? "twice: " : "without: ") << describe(plan, 0, section, i));
        CHECK(caught);
      }
    }
  }
  CHECK(tried > 50);
}

TEST_CASE("works are mathematics or memory, at most 80, none named after a strategy") {
  std::vector<std::string> strategies = {"tensor", "pipeline", "sequence_parallel", "shard_"};
  for (const NameRow<DataKind>& row : name_table<DataKind>()) {
    if (row.value != DataKind::kDp) {  // two letters, in many words
      strategies.emplace_back(row.name);
    }
  }
  for (const NameRow<ZeroFlavour>& row : name_table<ZeroFlavour>()) {
    strategies.emplace_back(row.name);
  }
  for (int work = 0; work < kWorks; ++work) {
    const std::string name(name_of(static_cast<Work>(work)));
    INFO(name);
    CHECK(std::none_of(strategies.begin(), strategies.end(), [&](const std::string& strategy) {
      return name.find(strategy) != std::string::npos;
    }));
  }
  CHECK(kWorks <= 80);
}

}  // namespace lockstep
