// The event simulation: operations per second, the largest runs that people ask for, and the event
// queue alone.
#include <random>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "core/cluster_presets.h"
#include "core/io/scenario_io.h"
#include "core/memory_timeline.h"
#include "core/model_presets.h"
#include "core/planner/planner.h"
#include "core/report.h"
#include "simulator/event_queue.h"
#include "simulator/simulate.h"

namespace lockstep {
namespace {

/// Llama 405B on 16,384 GPUs: tp 8 with sequence parallelism, pp 16, ZeRO-1 over dp 128.
Scenario llama_405b(std::int64_t microbatches) {
  Scenario scenario;
  scenario.model = *find_model_preset("llama-3.1-405b");
  scenario.cluster = *find_cluster_preset("dgx-h100");
  scenario.cluster.nodes = 2048;
  scenario.training.seq_len = 8192;
  scenario.training.accumulate = microbatches;
  scenario.strategy.tensor.degree = 8;
  scenario.strategy.tensor.sequence_parallel = true;
  scenario.strategy.pipeline.degree = 16;
  scenario.strategy.data.kind = DataKind::kZero1;
  scenario.strategy.data.flavour = ZeroFlavour::kMegatron;
  scenario.strategy.data.degree = 128;
  return scenario;
}

/// Llama 70B on 8 GPUs.
Scenario llama_70b(bool fsdp) {
  Scenario scenario;
  scenario.model = *find_model_preset("llama-3.1-70b");
  scenario.cluster = *find_cluster_preset("dgx-h100");
  scenario.training.seq_len = 8192;
  if (fsdp) {
    scenario.strategy.data.kind = DataKind::kFsdp;
    scenario.strategy.data.degree = 8;
  } else {
    scenario.strategy.tensor.degree = 8;
    scenario.strategy.tensor.sequence_parallel = true;
  }
  return scenario;
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;  // Linux counts KiB
}

/// Budget: < 1 s and < 1 GiB, from the scenario's text to the report.
void parse_to_report_405b(benchmark::State& state) {
  const std::string text = scenario_text(llama_405b(state.range(0)));
  double step = 0;
  for (auto _ : state) {
    const Scenario scenario = resolved(parse_scenario(text, "scenario"));
    const Plan plan = make_plan(scenario);
    const sim::Simulation run = sim::simulate(plan, scenario.cluster);
    step = make_report(plan, run.trace, report_facts(scenario)).step_time_s();
  }
  state.counters["step s"] = step;
  state.counters["peak MiB of the process"] = peak_mib();
}
BENCHMARK(parse_to_report_405b)->Unit(benchmark::kMillisecond)->Arg(16)->Arg(64)->Iterations(2);

/// Budget: >= 5 M operations a second on a prepared plan.
void simulate_405b(benchmark::State& state) {
  const Scenario scenario = resolved(llama_405b(64));
  const Plan plan = make_plan(scenario);
  std::int64_t operations = 0;
  for (auto _ : state) {
    operations += sim::simulate(plan, scenario.cluster).operations;
  }
  state.SetItemsProcessed(operations);
}
BENCHMARK(simulate_405b)->Unit(benchmark::kMillisecond)->Iterations(5);

/// Budget: < 50 ms, 8 ranks unfolded, with the memory timeline.
void simulate_70b_unfolded(benchmark::State& state) {
  const Scenario scenario = resolved(llama_70b(state.range(0) == 0));
  sim::SimulationOptions options;
  options.fold = false;
  for (auto _ : state) {
    const Plan plan = make_plan(scenario);
    const sim::Simulation run = sim::simulate(plan, scenario.cluster, options);
    for (int rank = 0; rank < 8; ++rank) {
      benchmark::DoNotOptimize(memory_timeline(plan, run.trace.steps[0], rank));
    }
  }
}
BENCHMARK(simulate_70b_unfolded)->Unit(benchmark::kMillisecond)->Arg(0)->Arg(1)->Iterations(20);

/// Budget: >= 10 M events a second with 16,384 pending.
void event_queue(benchmark::State& state) {
  sim::EventQueue<std::uint64_t> queue;
  std::mt19937_64 random(1);
  std::vector<Nanoseconds> delays(1 << 16);
  for (Nanoseconds& delay : delays) {
    delay = static_cast<Nanoseconds>(random() % 1'000'000);
  }
  for (std::uint64_t i = 0; i < 16384; ++i) {
    queue.push(delays[i], i);
  }
  std::size_t next = 0;
  for (auto _ : state) {
    const auto event = queue.pop();
    queue.push(event.time + delays[next++ & 0xffffU], event.payload);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(event_queue);

}  // namespace
}  // namespace lockstep

BENCHMARK_MAIN();
