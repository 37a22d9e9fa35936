#include "simulator/search.h"

#include <algorithm>

#include "core/cluster_presets.h"
#include "core/error.h"
#include "core/memory_report.h"
#include "core/model_presets.h"
#include "core/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/support/catch.h"

namespace lockstep::sim {
namespace {

Scenario eight_devices() {
  Scenario scenario;
  scenario.model = *find_model_preset("llama-3.2-1b");
  scenario.cluster = *find_cluster_preset("dgx-h100");
  scenario.training.seq_len = 2048;
  scenario.training.global_batch = 32;
  return resolved(scenario);
}

SearchSpace small_space() {
  SearchSpace space;
  space.devices = 8;
  space.micro_batch = {1, 3};
  space.recompute = {Recompute::kNone, Recompute::kFull};
  return space;
}

bool same(const SearchResult& a, const SearchResult& b) {
  return a.candidates == b.candidates && a.feasible == b.feasible && a.rejected == b.rejected &&
         std::equal(a.best.begin(),
                    a.best.end(),
                    b.best.begin(),
                    b.best.end(),
                    [](const Candidate& x, const Candidate& y) {
                      return x.simulated_s == y.simulated_s && x.estimated_s == y.estimated_s &&
                             x.peak_bytes == y.peak_bytes;
                    });
}

TEST_CASE("a search is the same on one thread and on three") {
  const Scenario base = eight_devices();
  const SearchResult one = search(base, small_space(), {6, 1});
  const SearchResult three = search(base, small_space(), {6, 3});
  CHECK(same(one, three));
  CHECK(one.best.size() == 6);
}

TEST_CASE("what a search returns is legal, fits, keeps the batch and is sorted by simulation") {
  const Scenario base = eight_devices();
  const SearchResult result = search(base, small_space(), {6, 2});
  double last = 0;
  for (const Candidate& each : result.best) {
    const Scenario scenario = each.scenario(base);
    CHECK(validate(scenario).empty());
    CHECK(samples_per_step(scenario) == 32);
    CHECK(scenario.strategy.world_size() == 8);
    CHECK(each.peak_bytes <= scenario.cluster.device.memory_bytes);
    const Plan plan = make_plan(scenario, {false, false});
    const double simulated =
        static_cast<double>(simulate(plan, scenario.cluster).trace.steps[0].end) * 1e-9;
    CHECK(*each.simulated_s == simulated);
    CHECK(simulated >= last);
    last = simulated;
  }
}

TEST_CASE("ranks that take turns on few cores are priced so in the estimate too") {
  Scenario base = eight_devices();
  base.cluster.cores_per_node = 3;
  const SearchResult crowded = search(base, small_space(), {6, 2});
  base.cluster.cores_per_node = 0;  // a device for every rank
  const SearchResult free = search(base, small_space(), {6, 2});
  CHECK(crowded.median_difference < 0.1);
  CHECK(crowded.best.front().estimated_s > 2 * free.best.front().estimated_s);
}

TEST_CASE("every layout is either feasible or rejected for a reason") {
  const SearchResult result = search(eight_devices(), small_space(), {1, 2});
  std::int64_t rejected = 0;
  for (const auto& [reason, count] : result.rejected) {
    CHECK(!reason.empty());
    rejected += count;
  }
  CHECK(result.feasible + rejected == result.candidates);
  // 32 samples are no multiple of three.
  CHECK(result.rejected.count("the global batch is no multiple of dp x micro-batch") == 1);
}

TEST_CASE("a search without a global batch is refused") {
  Scenario base = eight_devices();
  base.training.global_batch = 0;
  CHECK_THROWS_AS(search(base, small_space(), {1, 1}), UsageError);
}

}  // namespace
}  // namespace lockstep::sim
