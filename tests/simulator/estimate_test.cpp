#include "simulator/estimate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/support/catch.h"
#include "tests/support/random_layout.h"
#include "tests/support/scale.h"

namespace lockstep {
namespace {

double simulated_seconds(const Scenario& scenario) {
  const Plan plan = make_plan(scenario, {false, false});
  return static_cast<double>(sim::simulate(plan, scenario.cluster).trace.steps[0].end) * 1e-9;
}

double estimated_seconds(const Scenario& scenario) {
  const PlanSummary summary = summarize_plan(scenario);
  return sim::Estimator(scenario.cluster, summary.tf32).estimate(summary).step_s;
}

TEST_CASE("the closed form is within 5 % of the event simulation in the median") {
  std::mt19937_64 random(test::test_seed());
  std::vector<double> errors;
  for (int i = 0; i < test::scaled(100); ++i) {
    const Scenario scenario = test::random_layout(random);
    const double simulated = simulated_seconds(scenario);
    errors.push_back(std::abs(estimated_seconds(scenario) - simulated) / simulated);
  }
  std::sort(errors.begin(), errors.end());
  const double median = errors[errors.size() / 2];
  const double p90 = errors[errors.size() * 9 / 10];
  INFO("median " << 100 * median << " %, p90 " << 100 * p90 << " %");
  CHECK(median <= 0.05);
  CHECK(p90 <= 0.25);
}

TEST_CASE("parts of an estimate add up to its step") {
  std::mt19937_64 random(test::test_seed() + 1);
  for (int i = 0; i < test::scaled(50); ++i) {
    const Scenario scenario = test::random_layout(random);
    const PlanSummary summary = summarize_plan(scenario);
    const sim::Estimate it = sim::Estimator(scenario.cluster, summary.tf32).estimate(summary);
    const double sum =
        it.compute_s + it.tensor_s + it.data_s + it.pipeline_s + it.tail_s + it.host_s;
    CHECK(it.step_s == Approx(sum));
  }
}

}  // namespace
}  // namespace lockstep
