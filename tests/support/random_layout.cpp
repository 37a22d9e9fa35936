#include "tests/support/random_layout.h"

#include <array>

#include "core/cluster_presets.h"
#include "core/model_presets.h"

namespace lockstep::test {
namespace {

template <typename Value, std::size_t N>
Value one_of(std::mt19937_64& random, const std::array<Value, N>& values) {
  return values[random() % N];
}

constexpr std::array<const char*, 8> kModels = {"gpt2-xl",
                                                "llama-3.2-1b",
                                                "llama-2-7b",
                                                "llama-3.1-8b",
                                                "llama-2-13b",
                                                "llama-3.1-70b",
                                                "qwen3-8b",
                                                "mistral-7b"};
constexpr std::array<const char*, 5> kClusters = {
    "dgx-a100-80gb", "dgx-a100-40gb", "dgx-h100", "h200", "b200"};

void draw_data(std::mt19937_64& random, Scenario& scenario) {
  using K = DataKind;
  DataStrategy& data = scenario.strategy.data;
  data.kind = one_of(
      random, std::array{K::kDdp, K::kZero1, K::kZero1, K::kZero2, K::kZero3, K::kFsdp, K::kHsdp});
  data.degree = std::int64_t{1} << (random() % 6);
  if (data.kind == K::kZero1 || data.kind == K::kZero2) {
    data.flavour = one_of(random, std::array{ZeroFlavour::kPaper, ZeroFlavour::kMegatron});
  }
  if (data.kind == K::kHsdp) {
    data.replicate = 2;
  }
  data.reshard = one_of(random, std::array{Reshard::kOn, Reshard::kOn, Reshard::kOff});
}

Scenario draw(std::mt19937_64& random) {
  using S = ScheduleKind;
  Scenario scenario;
  scenario.model = *find_model_preset(one_of(random, kModels));
  scenario.cluster = *find_cluster_preset(one_of(random, kClusters));
  draw_data(random, scenario);
  scenario.strategy.tensor.degree = one_of(random, std::array{1, 1, 2, 4, 8});
  scenario.strategy.tensor.sequence_parallel = random() % 4 != 0;
  scenario.strategy.pipeline.degree = one_of(random, std::array{1, 1, 2, 4, 8});
  if (scenario.strategy.pipeline.degree > 1) {
    scenario.strategy.pipeline.schedule =
        one_of(random, std::array{S::kGPipe, S::k1F1B, S::k1F1B, S::kInterleaved, S::kZbH1});
    const bool interleaved = scenario.strategy.pipeline.schedule == S::kInterleaved;
    scenario.strategy.pipeline.chunks = interleaved ? 2 : 1;
  }
  scenario.training.seq_len = one_of(random, std::array{1024, 2048, 4096, 8192});
  scenario.training.micro_batch = one_of(random, std::array{1, 1, 2, 4});
  scenario.training.accumulate = one_of(random, std::array{1, 2, 4, 8, 16, 32});
  scenario.training.recompute =
      one_of(random, std::array{Recompute::kNone, Recompute::kNone, Recompute::kFull});
  return resolved(std::move(scenario));
}

}  // namespace

Scenario random_layout(std::mt19937_64& random) {
  Scenario scenario = draw(random);
  while (!validate(scenario).empty() || scenario.strategy.world_size() > 512) {
    scenario = draw(random);
  }
  return scenario;
}

}  // namespace lockstep::test
