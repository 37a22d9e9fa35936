#include "tests/support/one_rank.h"

namespace lockstep::test {

Scenario one_rank(const Scenario& scenario) {
  Scenario single = scenario;
  single.strategy = StrategySpec{};
  single.training.accumulate = 1;
  single.training.global_batch = 0;
  single.training.clip_norm = 0;
  single.training.recompute = Recompute::kNone;
  single.training.unused.clear();
  return resolved(single);
}

}  // namespace lockstep::test
