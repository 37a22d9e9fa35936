// The value check on the planner's plans: all agree with one rank, and a sample of their mutants
// (all of them in long runs) is caught.
#include <algorithm>
#include <string>
#include <vector>

#include "core/check/value_check.h"
#include "core/plan_text.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/mutants.h"
#include "tests/support/one_rank.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

/// A plan, its reference and what the check says of it.
struct Checked {
  explicit Checked(const Scenario& scenario)
      : plan(make_plan(scenario)),
        one_rank(make_plan(test::one_rank(scenario))),
        facts(value_facts(plan)),
        reference(one_rank, facts.setting),
        report(value_check(plan, reference, facts)) {}
  Checked(const Checked&) = delete;
  Checked& operator=(const Checked&) = delete;

  Plan plan;
  Plan one_rank;
  ValueFacts facts;
  ValueReference reference;
  ValueReport report;
};

struct Place {
  int section = 0;
  int class_index = 0;
  std::uint32_t operation = 0;
};

/// Communication, scale and add operations that do something.
std::vector<Place> places_of(const Checked& checked) {
  std::vector<Place> places;
  const Plan& plan = checked.plan;
  for (int s = 0; s < static_cast<int>(plan.sections.size()); ++s) {
    const Section& section = plan.sections[static_cast<std::size_t>(s)];
    for (int c = 0; c < static_cast<int>(section.programs.size()); ++c) {
      const auto& operations = section.programs[static_cast<std::size_t>(c)].operations;
      for (std::uint32_t i = 0; i < operations.size(); ++i) {
        const IdleOperation self{s, c, i};
        const auto& idle = checked.report.idle;
        if (test::is_bookkeeping(operations[i]) &&
            std::find(idle.begin(), idle.end(), self) == idle.end()) {
          places.push_back({s, c, i});
        }
      }
    }
  }
  return places;
}

bool caught(const Plan& mutant, Checked& original) {
  ValueCheckOptions options;
  options.max_problems = 1;
  options.explain = false;
  const ValueReport report = value_check(mutant, original.reference, original.facts, options);
  return !report.ok() || report.idle.size() != original.report.idle.size();
}

TEST_CASE("one plan of each strategy computes what one rank computes") {
  for (const test::NamedScenario& each : test::one_of_each()) {
    INFO(each.name);
    Checked checked(each.scenario);
    CHECK(checked.report.text() == "values agree");
  }
}

TEST_CASE("no communication, scale or add of the plans can be left out or issued twice") {
  // A prime stride visits other operations in every plan.
  const std::size_t stride = static_cast<std::size_t>(std::max(1, 61 / test::scaled(1)));
  std::size_t next = 0;
  for (const test::NamedScenario& each : test::one_of_each()) {
    Checked checked(each.scenario);
    if (!checked.report.ok()) {
      continue;  // the other test says so
    }
    const std::vector<Place> places = places_of(checked);
    for (; next < places.size(); next += stride) {
      const Place& at = places[next];
      INFO(each.name << ": " << describe(checked.plan, at.class_index, at.section, at.operation));
      CHECK(caught(test::remove_operation(checked.plan, at.class_index, at.section, at.operation),
                   checked));
      CHECK(
          caught(test::duplicate_operation(checked.plan, at.class_index, at.section, at.operation),
                 checked));
    }
    next -= places.size();
  }
}

TEST_CASE("no rank may leave batch norm's running statistics out of a checkpoint") {
  int writes = 0;
  for (const MlpNormKind norm : {MlpNormKind::kBatchNorm, MlpNormKind::kSyncBatchNorm}) {
    Scenario scenario = test::tiny_mlp(norm);
    scenario.strategy.data.degree = 2;
    Checked checked(resolved(scenario));
    REQUIRE(checked.report.text() == "values agree");
    const auto save = static_cast<int>(checked.plan.sections.size()) - 1;
    const Section& section = checked.plan.sections.back();
    REQUIRE(section.kind == SectionKind::kSave);
    for (int c = 0; c < static_cast<int>(section.programs.size()); ++c) {
      const std::vector<Operation>& operations = section.programs[c].operations;
      for (std::uint32_t i = 0; i < operations.size(); ++i) {
        const bool of_statistics =
            operations[i].work == Work::kWriteShard && operations[i].module != kNoModule;
        if (!of_statistics) {
          continue;
        }
        ++writes;
        const Plan mutant = test::remove_operation(checked.plan, c, save, i);
        const ValueReport report = value_check(mutant, checked.reference, checked.facts);
        CHECK_THAT(
            report.text(),
            Catch::Matchers::ContainsSubstring("the checkpoint lacks the running statistics"));
      }
    }
  }
  CHECK(writes > 0);
}

TEST_CASE("a message that is not sent leaves ranks waiting, and the report says where") {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.pipeline.degree = 2;
  scenario.training.accumulate = 2;
  Checked checked(resolved(scenario));
  REQUIRE(checked.report.ok());
  const Section& step = checked.plan.sections[1];
  const auto& operations = step.programs[0].operations;
  const auto send = std::find_if(operations.begin(), operations.end(), [](const Operation& op) {
    return op.kind == OperationKind::kSend;
  });
  const auto index = static_cast<std::uint32_t>(send - operations.begin());
  const ValueReport report = value_check(
      test::remove_operation(checked.plan, 0, 1, index), checked.reference, checked.facts);
  REQUIRE(report.problems.size() == 1);
  CHECK_THAT(report.text(), Catch::Matchers::ContainsSubstring("the ranks wait for each other"));
  CHECK_THAT(report.text(), Catch::Matchers::ContainsSubstring("rank 1 (1 posted"));
}

}  // namespace
}  // namespace lockstep
