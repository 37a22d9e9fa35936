// Variants of a step: DDP's first iterations, lazily created optimizer states; what each of them
// does and holds.
#include <algorithm>
#include <vector>

#include "core/names.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/model_state.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

constexpr auto kParameter = static_cast<std::size_t>(Category::kParameter);
constexpr auto kOptimizer = static_cast<std::size_t>(Category::kOptimizer);
constexpr auto kCommunication = static_cast<std::size_t>(Category::kCommunication);

/// Of tiny_gpt: embeddings, 2 blocks (norms, qkv, attention output, MLP), final norm.
constexpr std::int64_t kParameters = 37 * 12 + 12 * 12 + 2 * (48 + 468 + 156 + 312 + 300) + 24;

template <typename Change>
Plan plan_of(Change&& change) {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.data.degree = 2;
  scenario.training.optimizer_state = OptimizerStateCreation::kEager;
  change(scenario);
  scenario = resolved(scenario);
  require_valid(scenario);
  return make_plan(scenario);
}

using Variants = std::vector<std::int32_t>;

template <typename Change>
Variants variants_of(Change&& change) {
  return plan_of(change).variant_of_iteration;
}

int count(const Section& section, Collective kind, bool persistent_output, const Plan& plan) {
  int found = 0;
  for (const Operation& op : section.programs.front().operations) {
    if (op.kind == OperationKind::kCollective && op.collective == kind && !op.has(kControl)) {
      const Buffer& buffer =
          plan.buffers.front()[section.programs.front().outputs_of(op).front().buffer];
      found += (buffer.lifetime == Lifetime::kPersistent) == persistent_output ? 1 : 0;
    }
  }
  return found;
}

/// Bucket all-reduces and rebuild broadcasts of iterations 1, 2, ...
std::vector<std::pair<int, int>> reductions_and_rebuilds(const Plan& plan, int iterations) {
  std::vector<std::pair<int, int>> counts;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    counts.emplace_back(count(plan.step(iteration), Collective::kAllReduce, true, plan),
                        count(plan.step(iteration), Collective::kBroadcast, false, plan));
  }
  return counts;
}

void several_buckets(Scenario& s) {
  s.strategy.data.bucket_mib = 0.004;
}

std::int64_t peak_of(const ProgramSummary& summary) {
  return total(summary.peak.bytes);
}

}  // namespace

TEST_CASE("DDP has variants 0, 1 and 2 and later; with static_graph 3 and later") {
  CHECK(variants_of([](Scenario&) {}) == Variants{0, 1, 2});
  CHECK(variants_of([](Scenario& s) { s.strategy.data.static_graph = true; }) ==
        Variants{0, 1, 2, 3});
  CHECK(variants_of([](Scenario& s) { s.strategy.data.find_unused_parameters = true; }) ==
        Variants{0});
  CHECK(variants_of([](Scenario& s) { s.strategy.data.ideal = true; }) == Variants{0});
}

TEST_CASE("variants count synchronised passes, of which a step without no_sync has several") {
  const auto passes = [](std::int64_t microbatches, bool static_graph) {
    return [=](Scenario& s) {
      s.training.accumulate = microbatches;
      s.strategy.data.no_sync = false;
      s.strategy.data.static_graph = static_graph;
    };
  };
  CHECK(variants_of(passes(2, false)) == Variants{0, 1});    // rebuilt inside iteration 1
  CHECK(variants_of(passes(2, true)) == Variants{0, 1, 2});  // before iteration 2
  CHECK(variants_of(passes(3, true)) == Variants{0, 1});     // inside iteration 1
}

TEST_CASE("later iterations run the last variant") {
  const Plan plan = plan_of([](Scenario&) {});
  CHECK(&plan.step(2) == &plan.step(3));
  CHECK(&plan.step(2) == &plan.step(1000));
  CHECK(&plan.step(1) != &plan.step(2));
  CHECK(plan.step(1000).variant == 2);
}

TEST_CASE("the single bucket becomes several when it is rebuilt, and only then") {
  const Plan usual = plan_of(several_buckets);
  const int buckets = reductions_and_rebuilds(usual, 3).back().first;
  CHECK(buckets >= 3);
  using Counts = std::vector<std::pair<int, int>>;
  CHECK(reductions_and_rebuilds(usual, 4) ==
        Counts{{1, 0}, {buckets, 2}, {buckets, 0}, {buckets, 0}});
  const Plan static_graph = plan_of([](Scenario& s) {
    several_buckets(s);
    s.strategy.data.static_graph = true;
  });
  CHECK(reductions_and_rebuilds(static_graph, 5) ==
        Counts{{1, 0}, {1, 0}, {buckets, 2}, {buckets, 0}, {buckets, 0}});
}

TEST_CASE("buckets hold all gradients once, before and after they are rebuilt") {
  for (const bool static_graph : {false, true}) {
    const Plan plan = plan_of([&](Scenario& s) {
      several_buckets(s);
      s.strategy.data.static_graph = static_graph;
    });
    // 37 x 12 + 12 x 12 + 2 blocks of 4 x 12 + 36 x 13 + 12 x 13 + 24 x 13 + 12 x 25 + 2 x 12.
    for (const ProgramSummary& step : test::iterations(plan, 0, 5)) {
      CHECK(step.at_start[kCommunication] == kParameters * 4);
      CHECK(step.at_end[kCommunication] == kParameters * 4);
      CHECK(step.at_end[kParameter] == kParameters * 4);
    }
  }
}

TEST_CASE("lazy optimizer states come with the first step, eager ones with initialisation") {
  const auto created = [](OptimizerStateCreation creation, OptimizerKind optimizer) {
    return [=](Scenario& s) {
      s.strategy.data.degree = 1;
      s.training.optimizer_state = creation;
      s.training.optimizer = optimizer;
    };
  };
  const Plan lazy = plan_of(created(OptimizerStateCreation::kLazy, OptimizerKind::kAdamW));
  const Plan eager = plan_of(created(OptimizerStateCreation::kEager, OptimizerKind::kAdamW));
  CHECK(lazy.variant_of_iteration == Variants{0, 1});
  CHECK(eager.variant_of_iteration == Variants{0});
  const std::vector<ProgramSummary> late = test::iterations(lazy, 0, 4);
  const std::vector<ProgramSummary> early = test::iterations(eager, 0, 4);
  CHECK(late[0].at_start[kOptimizer] == 0);
  CHECK(late[0].at_end[kOptimizer] == 8 * kParameters);
  CHECK(early[0].at_start[kOptimizer] == 8 * kParameters);
  for (std::size_t iteration = 1; iteration < 4; ++iteration) {
    CHECK(late[iteration].at_start == early[iteration].at_start);
    CHECK(late[iteration].at_end == early[iteration].at_end);
    CHECK(peak_of(late[iteration]) == peak_of(early[iteration]));
  }
  // Sgd has no states to create, momentum has one.
  CHECK(variants_of(created(OptimizerStateCreation::kLazy, OptimizerKind::kSgd)) == Variants{0});
  CHECK(variants_of(created(OptimizerStateCreation::kLazy, OptimizerKind::kMomentum)) ==
        Variants{0, 1});
}

TEST_CASE("lazy states of a sharded optimizer are created between backward and the first update") {
  for (const DataKind kind : {DataKind::kZero1, DataKind::kZero2, DataKind::kFsdp}) {
    const Plan plan = plan_of([&](Scenario& s) {
      s.strategy.data.kind = kind;
      s.training.optimizer_state = OptimizerStateCreation::kLazy;
    });
    INFO(name_of(kind));
    CHECK(plan.variant_of_iteration == Variants{0, 1});
    bool stepped = false;
    std::int64_t created = 0;
    for (const Operation& op : plan.step(0).programs.front().operations) {
      stepped = stepped || op.work == Work::kAdamW;
      const bool is_state = op.kind == OperationKind::kAlloc &&
                            plan.buffers.front()[op.buffer].category == Category::kOptimizer;
      if (is_state) {
        ++created;
        CHECK(op.phase == Phase::kOptimizer);
        CHECK_FALSE(stepped);
      }
    }
    CHECK(stepped);
    CHECK(created > 0);
  }
}

TEST_CASE("activations meet lazy states from the second iteration on, so its peak is higher") {
  const Plan plan = plan_of([](Scenario& s) {
    s.strategy.data.degree = 1;
    s.training.optimizer_state = OptimizerStateCreation::kLazy;
    s.training.micro_batch = 16;  // activations outweigh gradients
  });
  const std::vector<ProgramSummary> steps = test::iterations(plan, 0, 3);
  CHECK(peak_of(steps[1]) == peak_of(steps[0]) + 8 * kParameters);
  CHECK(peak_of(steps[2]) == peak_of(steps[1]));
}

TEST_CASE("the summary describes the last variant, its memory included") {
  for (const bool static_graph : {false, true}) {
    Scenario scenario = test::tiny_gpt();
    scenario.strategy.data.degree = 3;
    scenario.strategy.data.static_graph = static_graph;
    several_buckets(scenario);
    scenario = resolved(scenario);
    const Plan plan = make_plan(scenario);
    const ProgramSummary counted = summarize_plan(scenario).classes.front();
    const std::vector<ProgramSummary> steps =
        test::iterations(plan, 0, test::steady_iteration(plan) + 2);
    CHECK(counted.at_start == steps.back().at_start);
    CHECK(counted.peak.bytes == steps.back().peak.bytes);
    CHECK(counted.operations == steps.back().operations);
  }
}

}  // namespace lockstep
