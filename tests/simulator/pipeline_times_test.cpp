// Pipelines at unit costs: the event simulation of whole plans gives the makespans of the reference
// table, which come from outside of this repository.
#include "core/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/simulator/whole_costs.h"
#include "tests/support/catch.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

struct Row {
  ScheduleKind schedule;
  int ranks;
  int chunks;
  int microbatches;
  double makespan;
};

/// One block per chunk; a block's forward, input gradient and weight gradient cost 1 / chunks each:
/// all of it on one operation of each. Everything else is free.
Scenario pipeline(const Row& row) {
  Scenario scenario = test::tiny_gpt();
  scenario.model.layers = row.ranks * row.chunks;
  scenario.model.intermediate = 23;  // so that no other matrix product has its shape
  scenario.model.tied_embeddings = false;
  scenario.training.accumulate = row.microbatches;
  scenario.strategy.pipeline.degree = row.ranks;
  scenario.strategy.pipeline.schedule = row.schedule;
  scenario.strategy.pipeline.chunks = row.chunks;
  return resolved(scenario);
}

test::WholeCosts unit_costs(int chunks) {
  test::WholeCosts costs;
  costs.compute = [chunks](const sim::PriceKey& key) {
    const bool up = key.shape.extent[1] == 23;  // the MLP's first matrix product
    const bool counts = key.work == Work::kMatmul || key.work == Work::kMatmulGradInput ||
                        key.work == Work::kMatmulGradWeight;
    return up && counts ? 1.0 / chunks : 0.0;
  };
  return costs;
}

double makespan(const Row& row) {
  const Scenario scenario = pipeline(row);
  const Plan plan = make_plan(scenario);
  const sim::Simulation run =
      sim::simulate(plan, scenario.cluster, unit_costs(row.chunks), sim::SimulationOptions{});
  return static_cast<double>(run.trace.steps.front().end) * 1e-9;
}

// Semantics, section 8.3.
TEST_CASE("pipelines with unit costs take the makespans of the reference table") {
  using K = ScheduleKind;
  const Row rows[] = {
      {K::kGPipe, 2, 1, 4, 15},
      {K::k1F1B, 2, 1, 4, 15},
      {K::kInterleaved, 2, 2, 4, 13.5},
      {K::kLoopedBfs, 2, 2, 4, 13.5},
      {K::kInterleavedZb, 2, 2, 4, 12.5},
      {K::kZbV, 2, 2, 4, 12.5},
      {K::kGPipe, 4, 1, 8, 33},
      {K::k1F1B, 4, 1, 8, 33},
      {K::kInterleaved, 4, 2, 8, 28.5},
      {K::kLoopedBfs, 4, 2, 8, 28.5},
      {K::kInterleavedZb, 4, 2, 8, 25.5},
      {K::kZbV, 4, 2, 8, 25.5},
      {K::kGPipe, 4, 1, 16, 57},
      {K::k1F1B, 4, 1, 16, 57},
      {K::kInterleaved, 4, 2, 16, 52.5},
      {K::kLoopedBfs, 4, 2, 16, 52.5},
      {K::kInterleavedZb, 4, 2, 16, 49.5},
      {K::kZbV, 4, 2, 16, 49.5},
      {K::kZbH1, 4, 1, 8, 27},
      {K::kZbH1, 8, 1, 32, 103},
      {K::kInterleaved, 4, 2, 6, 22.5},
      {K::kInterleaved, 4, 2, 10, 34.5},
  };
  for (const Row& row : rows) {
    INFO("schedule " << static_cast<int>(row.schedule) << " P " << row.ranks << " V " << row.chunks
                     << " M " << row.microbatches);
    CHECK(makespan(row) == Approx(row.makespan).epsilon(1e-7));
  }
}

}  // namespace
}  // namespace lockstep
