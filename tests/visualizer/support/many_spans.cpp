#include "tests/visualizer/support/many_spans.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "core/check.h"
#include "core/io/scenario_io.h"
#include "core/io/trace_io.h"
#include "core/planner/planner.h"
#include "simulator/simulate.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

constexpr int kNativeRanks = 16;
constexpr int kProfiledRanks = 8;

Scenario native_scenario(int accumulate) {
  Scenario scenario;
  set_key(scenario, "model", "gpt2-xl");
  set_key(scenario, "cluster", "dgx-h100");
  set_key(scenario, "training.seq_len", "1024");
  set_key(scenario, "training.accumulate", std::to_string(accumulate));
  set_key(scenario, "strategy.data.kind", "ddp");
  set_key(scenario, "strategy.data.degree", std::to_string(kNativeRanks));
  return resolved(scenario);
}

std::int64_t spans_of(const Trace& trace) {
  std::int64_t count = 0;
  for (const TraceStep& step : trace.steps) {
    for (const TraceTrack& track : step.tracks) {
      count += static_cast<std::int64_t>(track.spans.size());
    }
  }
  return count;
}

/// Micro-batches do the same, so that spans grow by as much with each.
int accumulation_for(std::int64_t spans) {
  const auto of = [](int accumulate) {
    const Scenario scenario = native_scenario(accumulate);
    const Plan plan = make_plan(scenario, {false, false});
    return kNativeRanks * spans_of(sim::simulate(plan, scenario.cluster).trace);
  };
  const std::int64_t two = of(2);
  const std::int64_t each = of(3) - two;
  return 2 + static_cast<int>(std::max<std::int64_t>(0, spans - two + each - 1) / each);
}

/// One operator: itself, its launch, an arrow, and the kernel or message that it launched.
std::string operator_text(int rank, std::int64_t number, double ts, bool collective) {
  std::string text = fmt::format(
      R"({{"ph": "X", "cat": "cpu_op", "name": "aten::op{0}", "pid": 100, "tid": 100, "ts": {1:.3f}, "dur": 16.105, "args": {{"External id": {2}}}}},
{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100, "ts": {3:.3f}, "dur": 4.1, "args": {{"External id": {2}, "correlation": {2}}}}},
{{"ph": "s", "id": {2}, "pid": 100, "tid": 100, "ts": {3:.3f}, "cat": "ac2g", "name": "ac2g"}},
)",
      number % 300,
      ts,
      number,
      ts + 5);
  const std::string arguments =
      collective ? fmt::format(R"("correlation": {}, "Collective name": "allreduce", )"
                               R"("In msg nelems": 1000, "Group size": {}, "dtype": "Float", )"
                               R"("Process Group Name": "0", "seq": {})",
                               number,
                               kProfiledRanks,
                               number)
                 : fmt::format(R"("correlation": {}, "grid": [211, 1, 1])", number);
  text += fmt::format(
      R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, "args": {{{}}}}},
{{"ph": "f", "id": {}, "pid": 0, "tid": {}, "ts": {:.3f}, "cat": "ac2g", "name": "ac2g", "bp": "e"}},
)",
      collective ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
                 : fmt::format("elementwise_kernel_{}", number % 40),
      collective ? 20 : 7,
      ts + 15 + rank,
      collective ? 90.0 : 14.368,
      arguments,
      number,
      collective ? 20 : 7,
      ts + 15 + rank);
  return text;
}

}  // namespace

std::int64_t write_native_trace(const std::string& path, std::int64_t spans) {
  const Scenario scenario = native_scenario(accumulation_for(spans));
  const Plan plan = make_plan(scenario, {false, false});
  sim::SimulationOptions options;
  options.fold = false;
  options.what_if.jitter = 0.05;
  const Trace trace = sim::simulate(plan, scenario.cluster, options).trace;
  LOCKSTEP_CHECK(spans_of(trace) >= spans, "micro-batches differ");
  save_trace(path, scenario, plan, trace);
  return spans_of(trace);
}

void write_profiler_traces(const fs::path& folder, std::int64_t events) {
  constexpr std::int64_t kEventsOfAnOperator = 5;
  const std::int64_t operators = events / kEventsOfAnOperator / kProfiledRanks + 1;
  for (int rank = 0; rank < kProfiledRanks; ++rank) {
    std::ofstream file(folder / fmt::format("rank-{}.pt.trace.json", rank), std::ios::binary);
    file << fmt::format(
        R"({{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}}}, "baseTimeNanoseconds": 1790857026000000000, "traceEvents": [
)",
        rank,
        kProfiledRanks);
    for (std::int64_t i = 0; i < operators; ++i) {
      file << operator_text(rank, i, 1000.0 + 20.0 * static_cast<double>(i), i % 20 == 0);
    }
    file << R"({"name": "End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 1}]})";
  }
}

}  // namespace lockstep::test
