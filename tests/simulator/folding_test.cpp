// Folded and unfolded simulations give every rank the same times, whatever the prices are.
#include <random>

#include "core/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/simulator/whole_costs.h"
#include "tests/support/catch.h"
#include "tests/support/random_scenario.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

/// Microseconds that nothing relates to one another, from the key alone.
double odd_price(std::uint64_t x) {
  x *= 0x9e3779b97f4a7c15U;
  x ^= x >> 29U;
  return 1e-6 * static_cast<double>(1 + x % 997);
}

std::uint64_t mixed(const sim::PriceKey& key) {
  auto x = static_cast<std::uint64_t>(key.work) * 31 + static_cast<std::uint64_t>(key.kind);
  for (const std::int64_t extent : key.shape.extent) {
    x = x * 1000003 + static_cast<std::uint64_t>(extent);
  }
  return x * 1000003 + static_cast<std::uint64_t>(key.elements);
}

test::WholeCosts odd_costs() {
  test::WholeCosts costs;
  costs.compute = [](const sim::PriceKey& key) { return odd_price(mixed(key)); };
  costs.communication = [](const sim::PriceKey& key, const sim::GroupPlacement& placement) {
    const auto lie = static_cast<std::uint64_t>(placement.nodes * 64 + placement.most_per_node * 8 +
                                                placement.least_per_node);
    return odd_price(mixed(key) + lie) * placement.slowdown;
  };
  costs.beside = 0.7;
  costs.launch = 3e-6;
  return costs;
}

bool same(const Span& a, const Span& b) {
  return a.operation == b.operation && a.state == b.state && a.issued == b.issued &&
         a.arrived == b.arrived && a.started == b.started && a.ended == b.ended;
}

/// First rank whose spans differ, or -1.
int first_difference(const TraceStep& a, const TraceStep& b) {
  for (std::size_t rank = 0; rank < a.track_of_rank.size(); ++rank) {
    const std::vector<Span>& left = a.track(static_cast<int>(rank)).spans;
    const std::vector<Span>& right = b.track(static_cast<int>(rank)).spans;
    if (!std::equal(left.begin(), left.end(), right.begin(), right.end(), same)) {
      return static_cast<int>(rank);
    }
  }
  return -1;
}

TEST_CASE("folded and unfolded simulations agree in every span of every rank") {
  std::mt19937_64 random(test::test_seed());
  const test::WholeCosts costs = odd_costs();
  for (int i = 0; i < test::scaled(300); ++i) {
    Scenario scenario = test::random_scenario(random);
    INFO(test::text_of(scenario));
    // Nodes that groups straddle evenly and unevenly.
    scenario.cluster.devices_per_node = std::int64_t{1} << (random() % 4);
    if (random() % 3 == 0) {
      scenario.cluster.devices_per_node = 3;
    }
    const Plan plan = make_plan(scenario, {false, false});
    const auto ranks = static_cast<unsigned>(plan.mesh.world_size());
    sim::SimulationOptions options;
    if (random() % 2 == 0) {
      options.what_if.slow_ranks.push_back({static_cast<int>(random() % ranks), 1.5});
    }
    if (random() % 3 == 0) {
      options.what_if.slow_links.push_back({static_cast<int>(random() % ranks), 2});
    }
    if (random() % 4 == 0) {
      options.what_if.skewed.push_back({static_cast<int>(random() % ranks), 1.25});
    }
    const sim::Simulation folded = sim::simulate(plan, scenario.cluster, costs, options);
    options.fold = false;
    const sim::Simulation unfolded = sim::simulate(plan, scenario.cluster, costs, options);
    REQUIRE(unfolded.trace.steps[0].tracks.size() == ranks);
    REQUIRE(folded.trace.steps[0].end == unfolded.trace.steps[0].end);
    REQUIRE(first_difference(folded.trace.steps[0], unfolded.trace.steps[0]) == -1);
  }
}

TEST_CASE("a plan of equal ranks folds to one track per pipeline stage") {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.data.kind = DataKind::kDdp;
  scenario.strategy.data.degree = 4;
  scenario.strategy.pipeline.degree = 2;
  scenario.training.accumulate = 2;
  scenario.cluster.devices_per_node = 8;
  const Plan plan = make_plan(resolved(scenario));
  const sim::Simulation run =
      sim::simulate(plan, scenario.cluster, odd_costs(), sim::SimulationOptions{});
  CHECK(run.trace.steps[0].tracks.size() == 2);
}

TEST_CASE("a slow rank splits the ranks by what they share with it") {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.data.kind = DataKind::kDdp;
  scenario.strategy.data.degree = 8;
  scenario.cluster.devices_per_node = 8;
  const Plan plan = make_plan(resolved(scenario));
  sim::SimulationOptions options;
  options.what_if.slow_ranks.push_back({5, 2});
  const sim::Simulation run = sim::simulate(plan, scenario.cluster, odd_costs(), options);
  REQUIRE(run.trace.steps[0].tracks.size() == 2);
  CHECK(run.trace.steps[0].tracks[1].ranks == std::vector<std::int32_t>{5});
}

}  // namespace
}  // namespace lockstep
