// How long a trace of PyTorch's profiler takes to read: one million events as Kineto writes them
// (host operators with shapes, launches with their arrows, kernels with grids, collectives), plain
// and packed, on one core. Budget: 1,000,000 events in less than 5 s.
//
//     kineto_bench
#include <cstdlib>
#include <filesystem>
#include <string>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "core/io/kineto_reader.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

constexpr int kEvents = 1'000'000;

/// Five events of one operator: itself, its launch, the launch's arrow, its kernel.
std::string operator_text(int number) {
  const double ts = 5196130379716.152 + number * 20.0;
  std::string text = fmt::format(
      R"~(  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::op{0}", "pid": 17808, "tid": 17808,
    "ts": {1:.3f}, "dur": 16.105,
    "args": {{
      "External id": {2},"Record function id": 0, "Concrete Inputs": ["", "[3, 16]", "False"], "Input type": ["float", "ScalarList", "Scalar"], "Input Strides": [[1], [], []], "Input Dims": [[16], [], []], "Ev Idx": {2}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 17808, "tid": 17808,
    "ts": {3:.3f}, "dur": 4.105,
    "args": {{
      "External id": {2}, "cbid": 211, "correlation": {2}
    }}
  }},
  {{
    "ph": "s", "id": {2}, "pid": 17808, "tid": 17808, "ts": {3:.3f},
    "cat": "ac2g", "name": "ac2g"
  }},
)~",
      number % 300,
      ts,
      number,
      ts + 5);
  return text + fmt::format(
                    R"~(  {{
    "ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, {0}> >(int, at::native::FillFunctor<float>, at::detail::Array<char*, 1>)", "pid": 0, "tid": 7,
    "ts": {1:.3f}, "dur": 14.368,
    "args": {{
      "External id": {2}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {2},
      "registers per thread": 16, "shared memory": 0, "blocks per SM": 2.6, "warps per SM": 5.3,
      "grid": [211, 1, 1], "block": [64, 1, 1], "est. achieved occupancy %": 8
    }}
  }},
  {{
    "ph": "f", "id": {2}, "pid": 0, "tid": 7, "ts": {1:.3f},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
)~",
                    number % 40,
                    ts + 15,
                    number);
}

std::string file_text() {
  std::string text =
      "{\"schemaVersion\": 1, \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, "
      "\"world_size\": 8}, \"baseTimeNanoseconds\": 1790857026000000000, \"traceEvents\": [\n";
  for (int i = 0; i < kEvents / 5; ++i) {
    text += operator_text(i);
  }
  return text + R"({"name": "End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 1}]})";
}

void from_memory(benchmark::State& state) {
  const std::string text = file_text();
  for (auto _ : state) {
    const ImportedTrace trace = import_kineto_text(text, "memory");
    benchmark::DoNotOptimize(trace.flows.size());
  }
  state.SetItemsProcessed(state.iterations() * kEvents);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

/// Plain or packed, as `pack` (a shell command from a file to standard output) makes it.
void from_file(benchmark::State& state, const std::string& pack) {
  const test::TemporaryFolder folder;
  const std::string text = file_text();
  const std::string plain = folder.write("plain.json", text);
  const std::string path = folder.file("packed");
  if (std::system(fmt::format("{} {} > {}", pack, plain, path).c_str()) != 0) {
    state.SkipWithError("packing failed");
  }
  for (auto _ : state) {
    const ImportedTrace trace = import_kineto({path});
    benchmark::DoNotOptimize(trace.flows.size());
  }
  state.SetItemsProcessed(state.iterations() * kEvents);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

BENCHMARK(from_memory)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(from_file, plain, "cat")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(from_file, gzip, "gzip -c")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep

BENCHMARK_MAIN();
