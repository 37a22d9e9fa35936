// The largest plan that people ask for: Llama 405B on 16,384 GPUs, with its checks, and the memory
// that it takes.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "core/check/plan_check.h"
#include "core/model_presets.h"
#include "core/planner/planner.h"

namespace lockstep {
namespace {

/// tp 8 with sequence parallelism, pp 16, ZeRO-1 in Megatron's form over dp 128, 64 micro-batches.
Scenario llama_405b() {
  Scenario scenario;
  scenario.model = *find_model_preset("llama-3.1-405b");
  scenario.training.seq_len = 8192;
  scenario.training.accumulate = 64;
  scenario.strategy.tensor.degree = 8;
  scenario.strategy.tensor.sequence_parallel = true;
  scenario.strategy.pipeline.degree = 16;
  scenario.strategy.data.kind = DataKind::kZero1;
  scenario.strategy.data.flavour = ZeroFlavour::kMegatron;
  scenario.strategy.data.degree = 128;
  return resolved(scenario);
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;  // Linux counts KiB
}

void plan_405b(benchmark::State& state) {
  const Scenario scenario = llama_405b();
  std::int64_t operations = 0;
  for (auto _ : state) {
    const Plan plan = make_plan(scenario);
    operations = plan.operation_count();
  }
  state.counters["operations"] = static_cast<double>(operations);
  state.counters["peak MiB of the process"] = peak_mib();
}
BENCHMARK(plan_405b)->Unit(benchmark::kMillisecond)->Iterations(3);

void check_405b(benchmark::State& state) {
  const Plan plan = make_plan(llama_405b());
  for (auto _ : state) {
    benchmark::DoNotOptimize(check_plan(plan));
  }
}
BENCHMARK(check_405b)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace lockstep

BENCHMARK_MAIN();
