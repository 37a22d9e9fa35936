// How many plan summaries a second one core makes, over the configurations that a search tries:
// Llama 70B and 8B on 8 to 1,024 GPUs. Every configuration is summarised exactly once, so the time
// includes what the Summarizer has to count before it can put steps together.
//
//     summary_bench --benchmark_repetitions=5
#include <algorithm>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/model_presets.h"
#include "core/planner/summarizer.h"

namespace lockstep {
namespace {

struct Configuration {
  std::int16_t model = 0;
  std::int16_t tensor = 1;
  bool sequence_parallel = false;
  std::int16_t pipeline = 1;
  DataKind kind = DataKind::kDdp;
  std::int16_t data = 1;
  std::int16_t micro_batch = 1;
  std::int16_t accumulate = 1;
  Recompute recompute = Recompute::kNone;
};

constexpr DataKind kKinds[] = {DataKind::kDdp,
                               DataKind::kZero1,
                               DataKind::kZero2,
                               DataKind::kZero3,
                               DataKind::kFsdp,
                               DataKind::kHsdp};

bool is_legal(const Configuration& each) {
  const bool replicas = each.kind == DataKind::kHsdp;
  return each.accumulate >= each.pipeline && each.data >= (replicas ? 4 : 1) &&
         (each.data > 1 || each.kind == DataKind::kDdp);
}

void add_batches(Configuration each, std::vector<Configuration>& grid) {
  for (const int micro_batch : {1, 2, 4, 8}) {
    for (const int accumulate : {1, 2, 4, 8, 16, 32, 64}) {
      for (const Recompute recompute :
           {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        each.micro_batch = static_cast<std::int16_t>(micro_batch);
        each.accumulate = static_cast<std::int16_t>(accumulate);
        each.recompute = recompute;
        if (is_legal(each)) {
          grid.push_back(each);
        }
      }
    }
  }
}

/// The grid in the order of its loops, batches inside.
std::vector<Configuration> search_grid(std::span<const DataKind> kinds) {
  std::vector<Configuration> grid;
  Configuration each;
  for (each.model = 0; each.model < 2; ++each.model) {
    for (const DataKind kind : kinds) {
      each.kind = kind;
      for (const int cut : {10, 20, 21, 40, 41, 80, 81}) {
        each.tensor = static_cast<std::int16_t>(cut / 10);
        each.sequence_parallel = cut % 10 == 1;
        for (const int pipeline : {1, 2, 4, 8, 16}) {
          each.pipeline = static_cast<std::int16_t>(pipeline);
          for (int world = 8; world <= 1024; world *= 2) {
            each.data = static_cast<std::int16_t>(world / (each.tensor * pipeline));
            add_batches(each, grid);
          }
        }
      }
    }
  }
  return grid;
}

class Search {
 public:
  Search() {
    for (const char* name : {"llama-3.1-70b", "llama-3.1-8b"}) {
      Scenario& scenario = scenarios_.emplace_back();
      scenario.model = *find_model_preset(name);
      scenario.training.seq_len = 4096;
    }
  }

  const Scenario& scenario(const Configuration& each) {
    Scenario& scenario = scenarios_[static_cast<std::size_t>(each.model)];
    DataStrategy& data = scenario.strategy.data;
    data.kind = each.kind;
    data.degree = each.data;
    data.replicate = each.kind == DataKind::kHsdp ? 2 : 1;
    data.flavour = each.kind == DataKind::kZero1 ? ZeroFlavour::kMegatron : ZeroFlavour::kPaper;
    scenario.strategy.tensor.degree = each.tensor;
    scenario.strategy.tensor.sequence_parallel = each.sequence_parallel;
    scenario.strategy.pipeline.degree = each.pipeline;
    scenario.training.micro_batch = each.micro_batch;
    scenario.training.accumulate = each.accumulate;
    scenario.training.recompute = each.recompute;
    return scenario;
  }

 private:
  std::vector<Scenario> scenarios_;
};

void summarize_all(benchmark::State& state, std::vector<Configuration> grid) {
  Search search;
  Summarizer summarizer;
  std::size_t next = 0;
  for (auto _ : state) {
    const StepOutline& step = summarizer.outline(search.scenario(grid[next]));
    benchmark::DoNotOptimize(step.classes.front().peak.bytes[0]);
    next = next + 1 == grid.size() ? 0 : next + 1;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

void add(const std::string& name, std::vector<Configuration> grid, std::size_t at_most) {
  const std::size_t count = std::min(grid.size(), at_most);
  benchmark::RegisterBenchmark(name.c_str(), summarize_all, std::move(grid))
      ->Iterations(static_cast<std::int64_t>(count))
      ->Unit(benchmark::kMicrosecond);
}

void add_all() {
  const char* names[] = {"ddp", "zero1 megatron", "zero2", "zero3", "fsdp", "hsdp"};
  std::vector<Configuration> composed;
  constexpr std::size_t kAll = ~std::size_t{0};
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    std::vector<Configuration> grid = search_grid({&kKinds[i], 1});
    const bool slow = kKinds[i] == DataKind::kZero2;  // counted afresh: a sample is enough
    if (slow) {
      std::mt19937 random(1);
      std::shuffle(grid.begin(), grid.end(), random);
    } else {
      composed.insert(composed.end(), grid.begin(), grid.end());
    }
    add(names[i], std::move(grid), slow ? 500 : kAll);
  }
  add("all but zero2, grid order", composed, kAll);
  std::mt19937 random(1);
  std::shuffle(composed.begin(), composed.end(), random);
  add("all but zero2, random order", std::move(composed), kAll);
  std::vector<Configuration> all = search_grid(kKinds);
  std::shuffle(all.begin(), all.end(), random);
  add("all, random order (sample)", std::move(all), 5000);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::add_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
