// How fast the window answers, without a window: frames are drawn into ImGui's lists, on one core,
// while the worker has another. Budgets:
//
//     first_picture      1 s      a preset from nothing to a picture, atlas and rasteriser included
//     open_native        2 s      a native trace of 1,000,000 spans, from the file to its first
//     frame open_profiler      5 s      the same of 1,000,000 events of PyTorch's profiler
//     move_in_*          8 ms     CPU of a frame in them, at most 10,000 quads
//     edit               50 ms    from a changed field to the frame that shows its step time, with
//                                 64 ranks and 96 layers
//
//     view_bench
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include <benchmark/benchmark.h>

#include "core/io/scenario_io.h"
#include "tests/support/temporary_folder.h"
#include "tests/visualizer/support/many_spans.h"
#include "visualizer/shot/headless.h"
#include "visualizer/ui/compat.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMany = 1'000'000;
constexpr int kWidth = 1280;
constexpr int kHeight = 800;

struct Files {
  Files() : native(folder.file("many.lstrace")), profiler(folder.path() / "profiler") {
    test::write_native_trace(native, kMany);
    std::filesystem::create_directory(profiler);
    test::write_profiler_traces(profiler, kMany);
  }
  test::TemporaryFolder folder;
  std::string native;
  std::filesystem::path profiler;
};

const Files& files() {
  static const Files made;
  return made;
}

/// Draws until a document is shown that is another than `before`.
void draw_until_changed(shot::Headless& window, const app::DocumentPtr& before) {
  do {
    window.frame();
  } while (window.app().session().document() == before);
}

void first_picture(benchmark::State& state, const std::string& preset) {
  for (auto _ : state) {
    shot::Headless window(kWidth, kHeight, {});
    window.app().session().open(preset);
    draw_until_changed(window, nullptr);
    window.frame();  // sizes that depend on the frame before
    benchmark::DoNotOptimize(window.picture());
  }
}

void open_file(benchmark::State& state, const std::string& path) {
  for (auto _ : state) {
    state.PauseTiming();
    {
      shot::Headless window(kWidth, kHeight, {});
      window.frames(2);
      state.ResumeTiming();
      window.app().session().open(path);
      draw_until_changed(window, nullptr);
      state.PauseTiming();
    }
    state.ResumeTiming();
  }
}

void open_native(benchmark::State& state) {
  open_file(state, files().native);
}

void open_profiler(benchmark::State& state) {
  open_file(state, files().profiler.string());
}

/// Zooms in and out over the middle of the rows, and pans from one end to the other.
void move_in(benchmark::State& state, const std::string& path) {
  shot::Headless window(kWidth, kHeight, {});
  window.app().session().open(path);
  window.settle();
  const ui::Tag body = window.app().tags().all().at("lanes.body");
  double worst = 0;
  int most_quads = 0;
  int number = 0;
  for (auto _ : state) {
    const int phase = number++ % 200;
    ui::feed_mouse(
        window.io(),
        ImVec2(body.min.x + (body.max.x - body.min.x) * (0.3F + 0.003F * static_cast<float>(phase)),
               body.centre().y));
    const bool zooms = phase < 60 || phase >= 140;
    if (zooms) {
      ui::feed_wheel(window.io(), phase < 60 ? 0.5F : -0.5F);
    }
    ui::feed_key(
        window.io(), phase % 20 < 10 ? ui::Key::kD : ui::Key::kA, !zooms && phase % 2 == 0);
    const auto start = std::chrono::steady_clock::now();
    window.frame();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    worst = std::max(worst, took.count());
    most_quads = std::max(most_quads, window.quads());
  }
  state.counters["worst_ms"] = worst;
  state.counters["quads"] = most_quads;
}

void move_in_native(benchmark::State& state) {
  move_in(state, files().native);
}

void move_in_profiler(benchmark::State& state) {
  move_in(state, files().profiler.string());
}

/// GPT-3 has 96 layers.
void edit(benchmark::State& state, const std::string& strategy, const std::string& view) {
  shot::Headless window(kWidth, kHeight, {});
  app::Session& session = window.app().session();
  session.start([&] {
    Scenario scenario;
    set_key(scenario, "model", "gpt3-175b");
    set_key(scenario, "cluster", "dgx-h100");
    set_key(scenario, "training.seq_len", "2048");
    if (strategy == "fsdp") {
      set_key(scenario, "strategy.data.kind", "fsdp");
      set_key(scenario, "strategy.data.degree", "64");
    } else {
      set_key(scenario, "strategy.tensor.degree", "8");
      set_key(scenario, "strategy.pipeline.degree", "8");
      set_key(scenario, "training.accumulate", "8");
    }
    return scenario;
  }());
  window.settle();
  window.app().shell().show_view(view);
  window.settle();
  std::int64_t sequence = 2048;
  for (auto _ : state) {
    sequence = sequence == 2048 ? 1024 : 2048;
    const app::DocumentPtr before = session.document();
    session.edit([&](Scenario& it) { it.training.seq_len = sequence; });
    draw_until_changed(window, before);
  }
  state.counters["ranks"] = static_cast<double>(resolved(session.scenario()).strategy.world_size());
  state.counters["layers"] = static_cast<double>(session.scenario().model.layers);
}

BENCHMARK_CAPTURE(first_picture, ddp, "ddp")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(first_picture, fsdp, "fsdp")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(first_picture, mix, "mix")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(open_native)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(open_profiler)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(move_in_native)->Unit(benchmark::kMillisecond)->Iterations(400);
BENCHMARK(move_in_profiler)->Unit(benchmark::kMillisecond)->Iterations(400);

[[maybe_unused]] const bool edits_are_registered = [] {
  for (const std::string strategy : {"fsdp", "tensor+pipeline"}) {
    for (const std::string view :
         {"timeline", "budget", "buckets", "shards", "pipeline", "memory", "steps", "compare"}) {
      benchmark::RegisterBenchmark(("edit/" + strategy + "/" + view).c_str(),
                                   [=](benchmark::State& state) { edit(state, strategy, view); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
  return true;
}();

}  // namespace
}  // namespace lockstep

BENCHMARK_MAIN();
