// How long a native trace of a million spans takes to write and to read, on one core. Budget of
// reading: 0.5 s.
//
//     trace_bench
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include <benchmark/benchmark.h>

#include "core/io/trace_io.h"

namespace lockstep {
namespace {

constexpr std::int32_t kRanks = 10;
constexpr std::uint32_t kSpansOfARank = 100'000;

TraceFile million_spans() {
  TraceFile file;
  TraceStep& step = file.trace.steps.emplace_back();
  std::mt19937_64 random(1);
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    TraceTrack& track = step.tracks.emplace_back();
    track.ranks = {rank};
    Nanoseconds now = 0;
    for (std::uint32_t i = 0; i < kSpansOfARank; ++i) {
      const Nanoseconds start = now + static_cast<Nanoseconds>(random() % 1000);
      now = start + static_cast<Nanoseconds>(random() % 1'000'000);
      track.spans.push_back({2 * i, SpanState::kDone, start / 2, start, start, now});
    }
    step.end = std::max(step.end, now);
  }
  return file;
}

void write_million_spans(benchmark::State& state) {
  const TraceFile file = million_spans();
  for (auto _ : state) {
    benchmark::DoNotOptimize(encode_trace(file));
  }
  state.SetItemsProcessed(state.iterations() * kRanks * kSpansOfARank);
}

void read_million_spans(benchmark::State& state) {
  const std::string bytes = encode_trace(million_spans());
  for (auto _ : state) {
    benchmark::DoNotOptimize(decode_trace(bytes, "memory"));
  }
  state.SetItemsProcessed(state.iterations() * kRanks * kSpansOfARank);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}

BENCHMARK(write_million_spans)->Unit(benchmark::kMillisecond);
BENCHMARK(read_million_spans)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep

BENCHMARK_MAIN();
