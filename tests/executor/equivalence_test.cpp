// Every strategy computes the same thing: after some steps, parameters and losses are those of one
// rank that trains on the same samples.
#include <cmath>

#include "core/names.h"
#include "tests/support/catch.h"
#include "tests/support/real_run.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSteps = 5;

/// As it can be run: fp64, dense, the same dropout (none) on all.
bool runnable(Scenario& scenario) {
  scenario.training.precision = Precision::kFp64;
  scenario.training.gradient_dtype.reset();
  scenario.training.reduce_dtype.reset();
  scenario.training.loss_scaling.reset();
  scenario.training.dropout = 0;
  // Statistics of a rank's own samples differ from those of all samples by design.
  const bool own_statistics = scenario.model.mlp_norm == MlpNormKind::kBatchNorm;
  return !scenario.model.is_moe() && !own_statistics;
}

void check_losses(const test::RunResult& one, const test::RunResult& many, double tolerance) {
  REQUIRE(one.losses.size() == many.losses.size());
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    CHECK(std::abs(one.losses[i] - many.losses[i]) <= tolerance * std::abs(one.losses[i]));
  }
}

}  // namespace

TEST_CASE("Every strategy trains to the parameters of one rank", "[equivalence]") {
  for (test::NamedScenario& each : test::one_of_each()) {
    if (!runnable(each.scenario)) {
      continue;
    }
    INFO(each.name);
    const test::RunResult one = test::run_for_real(test::on_one_rank(each.scenario), kSteps);
    const test::RunResult many = test::run_for_real(each.scenario, kSteps);
    const test::Difference worst = test::difference(one, many);
    INFO(worst.tensor);
    CHECK(worst.relative <= 1e-12);
    check_losses(one, many, 1e-12);
    CHECK(one.losses.front() != one.losses.back());
  }
}

}  // namespace lockstep
