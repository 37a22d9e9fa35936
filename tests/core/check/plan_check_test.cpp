#include "core/check/plan_check.h"

#include "core/error.h"
#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a plan with pipeline, data parallelism and a guarded optimizer passes all checks") {
  CHECK(check_plan(two_stage_plan()).text() == "no problems");
}

TEST_CASE("a plan of more than fifty million operations is refused with the number") {
  CHECK_NOTHROW(refuse_if_too_large(50'000'000));
  CHECK_THROWS_AS(refuse_if_too_large(50'000'001), NotSupportedError);
  CHECK_THROWS_WITH(refuse_if_too_large(61'234'567),
                    ContainsSubstring("61234567 operations are more than 50000000") &&
                        ContainsSubstring("micro-batches") &&
                        ContainsSubstring("layers per stage") && ContainsSubstring("fold"));
}

TEST_CASE("problems are kept up to a limit, in all and per rule, and the rest is counted") {
  PlanCheckOptions options;
  options.max_problems = 5;
  options.max_per_rule = 3;
  PlanProblems problems(options);
  for (int i = 0; i < 10; ++i) {
    problems.add({PlanRule::kRace, "race " + std::to_string(i), 0, 0, i});
  }
  for (int i = 0; i < 4; ++i) {
    problems.add({PlanRule::kGuard, "guard " + std::to_string(i), 0, 0, i});
  }
  CHECK(problems.list().size() == 5);
  CHECK(problems.left_out() == 9);
  CHECK(problems.count(PlanRule::kRace) == 10);
  CHECK(problems.text() ==
        "race: race 0\nrace: race 1\nrace: race 2\nguard: guard 0\nguard: guard 1\nand 9 more");
}

TEST_CASE("the same problem is reported once") {
  PlanProblems problems;
  problems.add({PlanRule::kRace, "x", 0, 0, 1});
  problems.add({PlanRule::kRace, "x", 0, 0, 1});
  CHECK(problems.list().size() == 1);
  CHECK(problems.count(PlanRule::kRace) == 1);
}

TEST_CASE("several faults of different kinds are reported at once, the same on every run") {
  Plan plan = two_stage_plan();
  Program& first = program_of(plan, kStepSection, 0);
  first.operations[find_operation(first, is_kind(OperationKind::kCollective))].elements = 32;
  Program& second = program_of(plan, kStepSection, 1);
  remove_operation(second, find_operation(second, is_kind(OperationKind::kFree)));
  const PlanProblems problems = check_plan(plan);
  CHECK(problems.count(PlanRule::kBounds) == 1);
  CHECK(problems.count(PlanRule::kLifetime) == 1);
  CHECK(problems.text() == check_plan(plan).text());
}
