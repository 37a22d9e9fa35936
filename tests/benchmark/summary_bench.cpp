// How many plan summaries a second one core makes, over the configurations that a search tries:
// Llama 70B and 8B on 8 to 1,024 GPUs. Every configuration is summarised exactly once, so the time
// includes what the Summarizer has to count before it can put steps together.
// "All kinds, grid order" is the figure to quote: it is what a search does. "Memory and time" is
// the closed form as a whole: the summary, the peak with what the driver takes, and the estimate.
//
//     summary_bench --benchmark_repetitions=5
#include <algorithm>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "core/cluster_presets.h"
#include "core/memory_report.h"
#include "core/model_presets.h"
#include "core/planner/summarizer.h"
#include "simulator/estimate.h"

namespace lockstep {
namespace {

struct Configuration {
  std::int16_t model = 0;
  std::int16_t tensor = 1;
  bool sequence_parallel = false;
  std::int16_t pipeline = 1;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  std::int16_t chunks = 1;
  DataKind kind = DataKind::kDdp;
  std::int16_t data = 1;
  std::int16_t micro_batch = 1;
  std::int16_t accumulate = 1;
  Recompute recompute = Recompute::kNone;
  std::int16_t every = 1;
};

constexpr DataKind kKinds[] = {DataKind::kDdp,
                               DataKind::kZero1,
                               DataKind::kZero2,
                               DataKind::kZero3,
                               DataKind::kFsdp,
                               DataKind::kHsdp};

/// What a grid goes through beside model, tensor parallelism, world size and batches.
struct Choices {
  std::vector<std::int16_t> models{0, 1};
  std::vector<DataKind> kinds{std::begin(kKinds), std::end(kKinds)};
  ScheduleKind schedule = ScheduleKind::k1F1B;
  std::int16_t chunks = 1;
  std::vector<int> worlds{8, 16, 32, 64, 128, 256, 512, 1024};
  std::vector<int> micro_batches{1, 2, 4, 8};
  std::int16_t every = 1;  ///< full recompute: of which layers
};

bool is_legal(const Configuration& each) {
  const bool replicas = each.kind == DataKind::kHsdp;
  const bool without_pipeline = each.kind == DataKind::kZero2 || each.kind == DataKind::kZero3;
  return each.accumulate >= each.pipeline && each.data >= (replicas ? 4 : 1) &&
         (each.data > 1 || each.kind == DataKind::kDdp) &&
         (each.pipeline == 1 || !without_pipeline);
}

void add_batches(Configuration each, const Choices& choices, std::vector<Configuration>& grid) {
  for (const int micro_batch : choices.micro_batches) {
    for (const int accumulate : {1, 2, 4, 8, 16, 32, 64}) {
      for (const Recompute recompute :
           {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        each.micro_batch = static_cast<std::int16_t>(micro_batch);
        each.accumulate = static_cast<std::int16_t>(accumulate);
        each.recompute = recompute;
        each.every = recompute == Recompute::kFull ? choices.every : std::int16_t{1};
        if (is_legal(each)) {
          grid.push_back(each);
        }
      }
    }
  }
}

/// The grid in the order of its loops, batches inside.
std::vector<Configuration> search_grid(const Choices& choices) {
  std::vector<Configuration> grid;
  Configuration each;
  for (const std::int16_t model : choices.models) {
    each.model = model;
    for (const DataKind kind : choices.kinds) {
      each.kind = kind;
      for (const int cut : {10, 20, 21, 40, 41, 80, 81}) {
        each.tensor = static_cast<std::int16_t>(cut / 10);
        each.sequence_parallel = cut % 10 == 1;
        for (const int pipeline : {1, 2, 4, 8, 16}) {
          each.pipeline = static_cast<std::int16_t>(pipeline);
          each.schedule = choices.schedule;
          each.chunks = pipeline > 1 ? choices.chunks : std::int16_t{1};
          for (const int world : choices.worlds) {
            each.data = static_cast<std::int16_t>(world / (each.tensor * pipeline));
            add_batches(each, choices, grid);
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
      scenario.cluster = *find_cluster_preset("dgx-h100");
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
    scenario.strategy.pipeline.schedule = each.schedule;
    scenario.strategy.pipeline.chunks = each.chunks;
    scenario.training.micro_batch = each.micro_batch;
    scenario.training.accumulate = each.accumulate;
    scenario.training.recompute = each.recompute;
    scenario.training.recompute_every = each.every;
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

/// Budget: >= 200,000 configurations a second.
void memory_and_time_of_all(benchmark::State& state, std::vector<Configuration> grid) {
  Search search;
  Summarizer summarizer;
  const ClusterSpec cluster = search.scenario(grid.front()).cluster;
  const sim::Estimator estimator(cluster, false);
  std::size_t next = 0;
  for (auto _ : state) {
    const Scenario& scenario = search.scenario(grid[next]);
    const PlanSummary summary = summarizer.summarize(scenario);
    benchmark::DoNotOptimize(counted_peak_bytes(scenario, summary));
    benchmark::DoNotOptimize(estimator.estimate(summary).step_s);
    next = next + 1 == grid.size() ? 0 : next + 1;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

using Measure = void (*)(benchmark::State&, std::vector<Configuration>);

void add(const std::string& name,
         std::vector<Configuration> grid,
         Measure measure = summarize_all) {
  const auto count = static_cast<std::int64_t>(grid.size());
  benchmark::RegisterBenchmark(name.c_str(), measure, std::move(grid))
      ->Iterations(count)
      ->Unit(benchmark::kMicrosecond);
}

/// The layouts of one search: Llama 70B on 1,024 GPUs, several schedules.
std::vector<Configuration> one_search() {
  Choices choices;
  choices.models = {0};
  choices.worlds = {1024};
  choices.micro_batches = {1, 2};
  std::vector<Configuration> grid;
  const auto append = [&](ScheduleKind schedule, std::int16_t chunks, std::int16_t every) {
    choices.schedule = schedule;
    choices.chunks = chunks;
    choices.every = every;
    const std::vector<Configuration> more = search_grid(choices);
    grid.insert(grid.end(), more.begin(), more.end());
  };
  append(ScheduleKind::k1F1B, 1, 1);
  append(ScheduleKind::kInterleaved, 2, 1);
  append(ScheduleKind::kZbH1, 1, 1);
  append(ScheduleKind::k1F1B, 1, 4);
  return grid;
}

void add_all() {
  const char* names[] = {"ddp", "zero1 megatron", "zero2", "zero3", "fsdp", "hsdp"};
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    Choices choices;
    choices.kinds = {kKinds[i]};
    add(names[i], search_grid(choices));
  }
  Choices others;
  others.kinds = {DataKind::kFsdp};
  others.every = 4;
  add("fsdp, every 4th layer recomputed", search_grid(others));
  others.every = 1;
  others.schedule = ScheduleKind::kZbH1;
  add("fsdp, zb-h1", search_grid(others));
  others.schedule = ScheduleKind::kInterleaved;
  others.chunks = 2;
  add("fsdp, interleaved", search_grid(others));

  std::vector<Configuration> search = one_search();
  const std::string name = fmt::format("one search of {} layouts", search.size());
  add(name, search);
  add("memory and time, " + name, std::move(search), memory_and_time_of_all);
  std::vector<Configuration> all = search_grid({});
  add("all kinds, grid order", all);
  std::mt19937 random(1);
  std::shuffle(all.begin(), all.end(), random);
  add("all kinds, random order", std::move(all));
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::add_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
