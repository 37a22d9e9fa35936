#include "kernels/cpu/optimizer.h"

#include <algorithm>

#include "tests/kernels/numeric.h"

namespace lockstep {
namespace {

using kernels::cpu::AdamWSettings;
using kernels::cpu::best;
using kernels::cpu::kernels_at;
using kernels::cpu::Optimizer;
using kernels::cpu::SgdSettings;

TEST_CASE("AdamW's first two steps equal a calculation by hand") {
  // Step 1: m = 0.1 g, v = 0.001 g^2, both corrections undo that: the update is lr g / (|g| + eps).
  double parameter = 2;
  double gradient = 0.5;
  double first = 0;
  double second = 0;
  AdamWSettings settings;
  settings.learning_rate = 0.1;
  settings.weight_decay = 0.01;
  best<Optimizer<double>>().adamw(&parameter, &gradient, &first, &second, settings, 1);
  CHECK(parameter == Approx(2 * (1 - 0.001) - 0.1 * 0.5 / (0.5 + 1e-8)).epsilon(1e-14));
  CHECK(first == Approx(0.05).epsilon(1e-14));
  CHECK(second == Approx(0.00025).epsilon(1e-14));
  // Step 2 with g = -1: m = 0.045 - 0.1, v = 0.00024975 + 0.001.
  const double before = parameter;
  gradient = -1;
  settings.step = 2;
  best<Optimizer<double>>().adamw(&parameter, &gradient, &first, &second, settings, 1);
  const double m = (0.045 - 0.1) / (1 - 0.81);
  const double v = 0.00124975 / (1 - 0.998001);
  CHECK(parameter == Approx(before * 0.999 - 0.1 * m / (std::sqrt(v) + 1e-8)).epsilon(1e-12));
}

TEST_CASE("SGD and momentum follow torch.optim.SGD") {
  double parameter = 1;
  double gradient = 0.5;
  double buffer = 99;  // not read in the first step
  SgdSettings settings;
  settings.learning_rate = 0.1;
  settings.weight_decay = 0.2;
  best<Optimizer<double>>().sgd(&parameter, &gradient, settings, 1);
  CHECK(parameter == Approx(1 - 0.1 * (0.5 + 0.2)).epsilon(1e-15));
  parameter = 1;
  settings.momentum = 0.9;
  settings.first_step = true;
  best<Optimizer<double>>().momentum(&parameter, &gradient, &buffer, settings, 1);
  CHECK(buffer == Approx(0.7).epsilon(1e-15));
  CHECK(parameter == Approx(0.93).epsilon(1e-15));
  settings.first_step = false;
  best<Optimizer<double>>().momentum(&parameter, &gradient, &buffer, settings, 1);
  CHECK(buffer == Approx(0.9 * 0.7 + 0.5 + 0.2 * 0.93).epsilon(1e-15));
  CHECK(parameter == Approx(0.93 - 0.1 * buffer).epsilon(1e-15));
}

TEST_CASE("AdamW on shards gives the bits of AdamW on the whole, on every instruction set") {
  constexpr std::int64_t kCount = 157;
  const std::vector<float> start = normal_numbers<float>(kCount, 1);
  const std::vector<float> gradient = normal_numbers<float>(kCount, 2);
  AdamWSettings settings;
  settings.learning_rate = 3e-4;
  settings.weight_decay = 0.1;
  const auto run = [&](const Optimizer<float>& kernels, std::int64_t shard) {
    std::vector<float> parameter = start;
    std::vector<float> first = zeros<float>(kCount);
    std::vector<float> second = zeros<float>(kCount);
    for (settings.step = 1; settings.step < 4; ++settings.step) {
      for (std::int64_t at = 0; at < kCount; at += shard) {
        kernels.adamw(parameter.data() + at,
                      gradient.data() + at,
                      first.data() + at,
                      second.data() + at,
                      settings,
                      std::min(shard, kCount - at));
      }
    }
    return parameter;
  };
  const std::vector<float> whole = run(best<Optimizer<float>>(), kCount);
  for (const auto level : levels_here()) {
    for (const std::int64_t shard : {1, 3, 8, 50, 79, 157}) {
      REQUIRE(run(kernels_at<Optimizer<float>>(level), shard) == whole);
    }
  }
}

}  // namespace
}  // namespace lockstep
