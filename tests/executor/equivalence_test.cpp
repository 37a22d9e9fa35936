// Every strategy computes the same thing: after some steps, parameters and losses are those of one
// rank that trains on the same samples.
#include <cmath>
#include <tuple>

#include "core/names.h"
#include "tests/support/catch.h"
#include "tests/support/hand_written.h"
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

/// A bias before a batch norm shifts what the mean takes away again: its gradient is zero but for
/// rounding, about 1e-16. AdamW divides it by its own size plus epsilon (1e-8) and so steps by up
/// to 1e-16 / 1e-8 of the learning rate (1e-3), at different places on different numbers of ranks.
double tolerance_of(const Scenario& scenario) {
  const bool noise_steps = scenario.model.mlp_norm == MlpNormKind::kSyncBatchNorm &&
                           scenario.training.optimizer == OptimizerKind::kAdamW;
  return noise_steps ? 1e-9 : 1e-12;
}

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
    CHECK(worst.relative <= tolerance_of(each.scenario));
    check_losses(one, many, 1e-12);
    CHECK(one.losses.front() != one.losses.back());
  }
}

/// Ranks and micro-batches with different numbers of labels that count: only the sum over all of
/// them divided by the number over all of them is what one rank computes.
TEST_CASE("Every strategy weighs every token alike, however many each rank has", "[equivalence]") {
  const test::RunOptions uneven{.uneven = true};
  int compared = 0;
  for (test::NamedScenario& each : test::one_of_each()) {
    if (!runnable(each.scenario)) {
      continue;
    }
    each.scenario.training.loss_mean = LossMean::kGlobalTokens;
    if (!validate(each.scenario).empty()) {
      continue;  // DDP without no_sync reduces what it accumulated before: sums cannot be had
    }
    INFO(each.name);
    const test::RunResult one =
        test::run_for_real(test::on_one_rank(each.scenario), kSteps, uneven);
    const test::RunResult many = test::run_for_real(each.scenario, kSteps, uneven);
    const test::Difference worst = test::difference(one, many);
    INFO(worst.tensor);
    CHECK(worst.relative <= tolerance_of(each.scenario));
    check_losses(one, many, 1e-12);
    CHECK(one.losses.front() != one.losses.back());
    ++compared;
  }
  CHECK(compared >= 40);
}

TEST_CASE("The mean of the ranks' means is another number where they have different tokens") {
  const test::RunOptions uneven{.uneven = true};
  Scenario scenario = test::tiny_gpt();
  scenario.training.precision = Precision::kFp64;
  scenario.strategy.data.kind = DataKind::kDdp;
  scenario.strategy.data.degree = 3;
  for (const LossMean mean : {LossMean::kGlobalTokens, LossMean::kMeanOfMeans}) {
    scenario.training.loss_mean = mean;
    const Scenario whole = resolved(scenario);
    const test::RunResult one = test::run_for_real(test::on_one_rank(whole), kSteps, uneven);
    const test::RunResult many = test::run_for_real(whole, kSteps, uneven);
    const double apart = test::difference(one, many).relative;
    const double losses_apart = std::abs(one.losses.front() / many.losses.front() - 1);
    if (mean == LossMean::kGlobalTokens) {
      CHECK(apart <= 1e-12);
      CHECK(losses_apart <= 1e-12);
    } else {
      CHECK(apart > 1e-6);
      CHECK(losses_apart > 1e-6);
    }
    // With as many tokens on every rank the two means are one.
    CHECK(test::difference(test::run_for_real(test::on_one_rank(whole), kSteps),
                           test::run_for_real(whole, kSteps))
              .relative <= 1e-12);
  }
}

TEST_CASE("Synchronised batch norm trains to the parameters of one rank", "[equivalence]") {
  Scenario scenario = test::tiny_mlp(MlpNormKind::kSyncBatchNorm);
  scenario.training.precision = Precision::kFp64;
  scenario.training.optimizer = OptimizerKind::kSgd;
  for (const std::int64_t ranks : {2, 3, 8}) {
    scenario.strategy.data.degree = ranks;
    const Scenario whole = resolved(scenario);
    const test::RunResult one = test::run_for_real(test::on_one_rank(whole), kSteps);
    CHECK(test::difference(one, test::run_for_real(whole, kSteps)).relative <= 1e-12);
  }
}

TEST_CASE("A strategy written by hand trains to the parameters of one rank", "[equivalence]") {
  for (const auto& [base, data, tensor] : {std::tuple{test::tiny_gpt(), 2, 3},
                                           std::tuple{test::tiny_llama(), 3, 2},
                                           std::tuple{test::tiny_mlp(), 4, 1}}) {
    Scenario scenario = base;
    scenario.training.precision = Precision::kFp64;
    scenario.training.accumulate = 2;
    scenario.training.clip_norm = 0.1;
    scenario.strategy.data.degree = data;
    scenario.strategy.tensor.degree = tensor;
    scenario = resolved(scenario);
    INFO(test::text_of(scenario));
    const test::RunResult one = test::run_for_real(test::on_one_rank(scenario), kSteps);
    const test::RunResult many =
        test::run_plan(scenario, test::hand_written_plan(scenario), kSteps);
    CHECK(test::difference(one, many).relative <= 1e-12);
    check_losses(one, many, 1e-12);
  }
}

}  // namespace lockstep
