// Every strategy at sizes that nothing divides trains to what one rank trains to: in fp64 to the
// last few digits, in fp32 to a few units in the last place (SGD) or to the same loss (AdamW, which
// divides small gradients by their own size).
#include <cmath>
#include <map>
#include <set>

#include "core/names.h"
#include "tests/support/awkward.h"
#include "tests/support/catch.h"
#include "tests/support/real_run.h"
#include "tests/support/scale.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSteps = 5;

/// Where the loss is the mean over all tokens, ranks have different numbers of them.
test::RunResult run(const Scenario& scenario) {
  const bool by_tokens = scenario.training.loss_mean == LossMean::kGlobalTokens;
  return test::run_for_real(scenario, kSteps, {.uneven = by_tokens});
}

/// Runs on one rank, each once: many strategies share their samples.
class References {
 public:
  const test::RunResult& of(const Scenario& scenario) {
    const Scenario one = test::on_one_rank(scenario);
    const auto [it, fresh] = runs_.try_emplace(test::text_of(one));
    if (fresh) {
      it->second = run(one);
    }
    return it->second;
  }

 private:
  std::map<std::string, test::RunResult> runs_;
};

double worst_loss(const test::RunResult& one, const test::RunResult& many) {
  double worst = one.losses.size() == many.losses.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(one.losses.size(), many.losses.size()); ++i) {
    const double apart = std::abs(one.losses[i] - many.losses[i]) / std::abs(one.losses[i]);
    worst = apart <= worst ? worst : apart;
  }
  return worst;
}

void check(const test::AwkwardScenario& each, const test::RunResult& one) {
  const TrainingSpec& training = each.scenario.training;
  const test::RunResult many = run(each.scenario);
  const test::Difference worst = test::difference(one, many);
  INFO(each.name << ": " << worst.tensor);
  if (training.precision == Precision::kFp64) {
    CHECK(worst.relative <= 1e-12);
    CHECK(worst_loss(one, many) <= 1e-12);
  } else if (training.optimizer == OptimizerKind::kSgd) {
    CHECK(worst.ulps <= LOCKSTEP_PRODUCT_ULPS);
  } else {
    CHECK(worst_loss(one, many) <= 1e-5);
  }
  CHECK(one.losses.front() != one.losses.back());
}

/// `each` tells by number of training, number of strategy and whether it stands for its kind what
/// is run in the usual test run; a long one runs all.
template <typename Chosen>
void check_all(Precision precision, Chosen&& chosen) {
  std::set<DataKind> kinds;
  std::set<ScheduleKind> schedules;
  std::vector<test::NamedScenario> trainings = test::awkward_trainings();
  for (std::size_t t = 0; t < trainings.size(); ++t) {
    trainings[t].scenario.training.precision = precision;
    References references;
    const std::vector<test::AwkwardScenario> all = test::awkward_strategies(trainings[t]);
    CHECK(all.size() >= 60);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (test::scaled(1) >= 10 || chosen(t, i, all[i].usual)) {
        check(all[i], references.of(all[i].scenario));
        kinds.insert(all[i].scenario.strategy.data.kind);
        schedules.insert(all[i].scenario.strategy.pipeline.schedule);
      }
    }
  }
  CHECK(kinds.size() == name_table<DataKind>().size());
  CHECK(schedules.size() == name_table<ScheduleKind>().size());
}

}  // namespace

TEST_CASE("in fp64 every strategy on 8 and 3 ranks trains to one rank's parameters",
          "[equivalence]") {
  check_all(Precision::kFp64, [](std::size_t t, std::size_t i, bool usual) {
    return i % (usual ? 2 : 4) == t % (usual ? 2 : 4);
  });
}

TEST_CASE("in fp32 every kind of strategy on 8 and 3 ranks stays with one rank", "[equivalence]") {
  check_all(Precision::kFp32,
            [](std::size_t t, std::size_t i, bool usual) { return usual && i % 4 == t; });
}

}  // namespace lockstep
