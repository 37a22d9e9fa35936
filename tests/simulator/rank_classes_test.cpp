#include "simulator/rank_classes.h"

#include "core/cluster_presets.h"
#include "core/model_presets.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/scenarios.h"

namespace lockstep::sim {
namespace {

Scenario of_16384() {
  Scenario scenario;
  scenario.model = *find_model_preset("llama-3.1-405b");
  scenario.cluster = *find_cluster_preset("dgx-h100");
  scenario.cluster.nodes = 2048;
  scenario.training.seq_len = 1024;
  scenario.training.accumulate = 16;
  scenario.strategy.tensor.degree = 8;
  scenario.strategy.pipeline.degree = 16;
  scenario.strategy.data.degree = 128;
  return resolved(scenario);
}

TEST_CASE("16,384 equal ranks are as many classes as there are stages") {
  const Scenario scenario = of_16384();
  const Plan plan = make_plan(scenario, {false, false});
  CHECK(classify(plan, scenario.cluster, {}, true).classes.size() == 16);
}

// The slow rank differs from its tensor group, its data group and its pipeline; what shares two of
// these coordinates with it, one, or none, makes four classes a stage.
TEST_CASE("a slow rank splits 16,384 ranks into some tens of classes") {
  const Scenario scenario = of_16384();
  const Plan plan = make_plan(scenario, {false, false});
  WhatIf what_if;
  what_if.slow_ranks.push_back({5000, 1.5});
  const RankClasses ranks = classify(plan, scenario.cluster, what_if, true);
  CHECK(ranks.classes.size() == 64);
  std::size_t sum = 0;
  for (const RankClass& each : ranks.classes) {
    sum += each.ranks.size();
  }
  CHECK(sum == 16384);
}

TEST_CASE("groups that straddle nodes unevenly are told apart") {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.tensor.degree = 3;
  scenario.strategy.data.degree = 2;
  scenario.cluster.devices_per_node = 4;  // ranks 0-2 on one node, 3-5 on two
  const Plan plan = make_plan(resolved(scenario), {false, false});
  const RankClasses ranks = classify(plan, scenario.cluster, {}, true);
  CHECK(ranks.class_of_rank[0] != ranks.class_of_rank[3]);
}

TEST_CASE("unfolded, every rank is a class of its own") {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.data.degree = 6;
  const Plan plan = make_plan(resolved(scenario), {false, false});
  CHECK(classify(plan, scenario.cluster, {}, false).classes.size() == 6);
}

}  // namespace
}  // namespace lockstep::sim
