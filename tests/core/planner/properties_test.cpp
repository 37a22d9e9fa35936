// What holds for every legal scenario: checks pass, the summary is the plan, memory comes back,
// sharding saves, and planning is a function.
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/check/plan_check.h"
#include "core/check/value_check.h"
#include "core/names.h"
#include "core/plan_text.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/idle.h"
#include "tests/support/model_state.h"
#include "tests/support/one_rank.h"
#include "tests/support/plan_dump.h"
#include "tests/support/random_scenario.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

/// Calls body(scenario) for random scenarios, other ones in each `series`; what fails is named in
/// full.
template <typename Body>
void for_random_scenarios(int count, std::uint64_t series, Body&& body) {
  std::mt19937_64 random(test::test_seed() * 1000 + series);
  for (int i = 0; i < test::scaled(count); ++i) {
    const Scenario scenario = test::random_scenario(random);
    INFO("seed " << test::test_seed() << ", scenario " << i << ": " << test::text_of(scenario));
    body(scenario);
  }
}

/// 8-bit Adam keeps a scale for each block of 256 elements that a rank has begun: many small
/// pieces have more of them than few large ones. AdamW has none.
Scenario without_blocks(Scenario scenario) {
  if (scenario.training.optimizer == OptimizerKind::kAdamW8bit) {
    scenario.training.optimizer = OptimizerKind::kAdamW;
  }
  return scenario;
}

// ---- summaries ---------------------------------------------------------------------------------

/// How many operations there are of each kind, in words: the indices of two plans' tables differ.
std::map<std::string, std::int64_t> table_of(const ProgramSummary& summary,
                                             const std::vector<Shape>& shapes,
                                             const std::vector<Communicator>& communicators) {
  std::map<std::string, std::int64_t> table;
  for (const OperationCount& each : summary.counts) {
    std::string key = fmt::format("{} {} {} {} on {}, {} {} {}{}",
                                  name_of(each.kind),
                                  name_of(each.work),
                                  name_of(each.collective),
                                  name_of(each.phase),
                                  name_of(each.stream),
                                  name_of(each.dtype),
                                  each.elements,
                                  fmt::join(shapes.at(each.shape).extent, "x"),
                                  each.control ? " control" : "");
    if (each.communicator != kNoCommunicator) {
      const Communicator& group = communicators[each.communicator];
      key += fmt::format(", group {}/{}", group.axes, group.pipeline_coordinates);
    }
    table[key] += each.count;
  }
  return table;
}

/// Lines "what: counted instead of emitted" for what differs; empty when nothing does.
std::string differences(const std::map<std::string, std::int64_t>& counted,
                        const std::map<std::string, std::int64_t>& emitted) {
  std::string text;
  const auto count_in = [](const std::map<std::string, std::int64_t>& table,
                           const std::string& key) {
    const auto found = table.find(key);
    return found == table.end() ? 0 : found->second;
  };
  std::map<std::string, std::int64_t> all = counted;
  all.insert(emitted.begin(), emitted.end());
  for (const auto& [key, unused] : all) {
    if (count_in(counted, key) != count_in(emitted, key)) {
      text += fmt::format(
          "{}: counted {}, emitted {}\n", key, count_in(counted, key), count_in(emitted, key));
    }
  }
  return text;
}

void check_equal(const ProgramSummary& counted,
                 const PlanSummary& summary,
                 const ProgramSummary& emitted,
                 const Plan& plan) {
  CHECK(counted.operations == emitted.operations);
  CHECK(counted.at_start == emitted.at_start);
  CHECK(counted.at_end == emitted.at_end);
  CHECK(differences(table_of(counted, summary.shapes, summary.communicators),
                    table_of(emitted, plan.shapes, plan.communicators)) == "");
  if (plan.mesh.size(Axis::kPipeline) == 1) {
    CHECK(counted.peak.bytes == emitted.peak.bytes);
    CHECK(counted.peak.module == emitted.peak.module);
    CHECK(counted.peak.work == emitted.peak.work);
  } else {
    CHECK(static_cast<double>(total(counted.peak.bytes)) ==
          Approx(static_cast<double>(total(emitted.peak.bytes))).epsilon(0.01));
  }
}

/// A quarter of the scenarios each: what takes longest, in pieces that run side by side.
void check_plans_and_values(std::uint64_t series) {
  for_random_scenarios(25, series, [](const Scenario& scenario) {
    const Plan plan = make_plan(scenario);
    CHECK(check_plan(plan).text() == "no problems");
    ValueCheckOptions options;
    options.max_problems = 3;
    const ValueReport report = value_check(plan, make_plan(test::one_rank(scenario)), options);
    CHECK(report.text() == "values agree");
    for (const IdleOperation& idle : report.idle) {
      INFO("idle: " << describe(plan, idle.class_index, idle.section, idle.operation));
      CHECK(test::may_be_idle(plan, idle));
    }
  });
}

}  // namespace

TEST_CASE(
    "random scenarios: plans have no fault, nothing idle, and compute what one rank computes, 1 of "
    "4") {
  check_plans_and_values(1);
}

TEST_CASE(
    "random scenarios: plans have no fault, nothing idle, and compute what one rank computes, 2 of "
    "4") {
  check_plans_and_values(2);
}

TEST_CASE(
    "random scenarios: plans have no fault, nothing idle, and compute what one rank computes, 3 of "
    "4") {
  check_plans_and_values(3);
}

TEST_CASE(
    "random scenarios: plans have no fault, nothing idle, and compute what one rank computes, 4 of "
    "4") {
  check_plans_and_values(4);
}

TEST_CASE("random scenarios: the summary counts what the plan of the steady step emits") {
  for_random_scenarios(300, 5, [](const Scenario& scenario) {
    const Plan plan = make_plan(scenario);
    const PlanSummary summary = summarize_plan(scenario);
    REQUIRE(static_cast<int>(summary.classes.size()) == plan.class_count());
    for (int c = 0; c < plan.class_count(); ++c) {
      INFO("class " << c);
      const int steady = test::steady_iteration(plan);
      check_equal(summary.classes[static_cast<std::size_t>(c)],
                  summary,
                  test::iterations(plan, c, steady + 1).back(),
                  plan);
    }
  });
}

TEST_CASE("random scenarios: memory returns to its start from the third iteration on") {
  for_random_scenarios(200, 6, [](const Scenario& scenario) {
    const Plan plan = make_plan(scenario);
    for (int c = 0; c < plan.class_count(); ++c) {
      const std::vector<ProgramSummary> steps =
          test::iterations(plan, c, test::steady_iteration(plan) + 4);
      for (std::size_t iteration = 2; iteration < steps.size(); ++iteration) {
        INFO("class " << c << ", iteration " << iteration);
        CHECK(steps[iteration].at_end == steps[iteration].at_start);
        CHECK(steps[iteration].at_start == steps.back().at_start);
      }
    }
  });
}

TEST_CASE("random scenarios: twice the ranks hold no more model state than the padding they list") {
  for_random_scenarios(200, 7, [](const Scenario& scenario) {
    const Scenario once = without_blocks(scenario);
    Scenario twice = once;
    twice.strategy.data.degree *= 2;
    twice.training.global_batch = 0;
    if (!validate(twice).empty() || scenario.strategy.data.degree == 1) {
      return;
    }
    const test::ModelState few = test::largest_model_state(make_plan(once));
    const test::ModelState many = test::largest_model_state(make_plan(twice));
    INFO("padding " << many.padding);
    CHECK(many.bytes <= few.bytes + many.padding);
  });
}

TEST_CASE("random scenarios: ZeRO 1, 2, 3 hold less and less model state, but for their padding") {
  for_random_scenarios(200, 8, [](const Scenario& scenario) {
    Scenario each = without_blocks(scenario);
    each.training.unused.clear();
    each.strategy.data.flavour = ZeroFlavour::kPaper;
    each.strategy.data.replicate = 1;
    each.strategy.data.reshard = Reshard::kOn;
    each.strategy.data.reshard_group = 0;
    std::int64_t before = std::numeric_limits<std::int64_t>::max();
    for (const DataKind kind :
         {DataKind::kDdp, DataKind::kZero1, DataKind::kZero2, DataKind::kZero3}) {
      each.strategy.data.kind = kind;
      each.strategy.data.gradient_as_bucket_view = false;
      if (!validate(each).empty()) {
        continue;
      }
      const test::ModelState state = test::largest_model_state(make_plan(each));
      INFO(name_of(kind) << ", padding " << state.padding);
      CHECK(state.bytes - state.padding <= before);
      before = state.bytes;
    }
  });
}

TEST_CASE("random scenarios: planning twice gives the same plan to the last field") {
  for_random_scenarios(60, 9, [](const Scenario& scenario) {
    CHECK(test::dump(make_plan(scenario)) == test::dump(make_plan(scenario)));
  });
}

}  // namespace lockstep
