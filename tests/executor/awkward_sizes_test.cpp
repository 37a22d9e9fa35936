// Every strategy at sizes that nothing divides trains to what one rank trains to: in fp64 to the
// last few digits, in fp32 to a few units in the last place (SGD) or to the same loss (AdamW, which
// divides small gradients by their own size).
#include <cmath>
#include <cstdio>
#include <map>

#include "tests/support/awkward.h"
#include "tests/support/catch.h"
#include "tests/support/real_run.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSteps = 5;

/// Runs on one rank, each once: many strategies share their samples.
class References {
 public:
  const test::RunResult& of(const Scenario& scenario) {
    const Scenario one = test::on_one_rank(scenario);
    const auto [it, fresh] = runs_.try_emplace(test::text_of(one));
    if (fresh) {
      it->second = test::run_for_real(one, kSteps);
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

void check_all(Precision precision, bool few) {
  for (test::NamedScenario& training : test::awkward_trainings()) {
    training.scenario.training.precision = precision;
    References references;
    int count = 0;
    for (const test::NamedScenario& each : test::awkward_strategies(training, few)) {
      INFO(each.name);
      const test::RunResult& one = references.of(each.scenario);
      const test::RunResult many = test::run_for_real(each.scenario, kSteps);
      const test::Difference worst = test::difference(one, many);
      INFO(worst.tensor);
      if (precision == Precision::kFp64) {
        CHECK(worst.relative <= 1e-12);
        CHECK(worst_loss(one, many) <= 1e-12);
      } else if (each.scenario.training.optimizer == OptimizerKind::kSgd) {
        CHECK(worst.ulps <= 8);
      } else {
        CHECK(worst_loss(one, many) <= 1e-5);
      }
      CHECK(one.losses.front() != one.losses.back());
      ++count;
    }
    std::printf("%s: %d\n", training.name.c_str(), count);
    CHECK(count >= (few ? 12 : 40));
  }
}

}  // namespace

TEST_CASE("in fp64 every strategy on 8 and 3 ranks trains to one rank's parameters",
          "[equivalence]") {
  check_all(Precision::kFp64, false);
}

TEST_CASE("in fp32 every kind of strategy on 8 and 3 ranks stays with one rank", "[equivalence]") {
  check_all(Precision::kFp32, true);
}

}  // namespace lockstep
