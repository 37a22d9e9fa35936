// What-ifs move what they touch and nothing else: differences of two traces, operation by
// operation.
#include "simulator/what_if.h"

#include <algorithm>

#include "core/error.h"
#include "core/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/simulator/whole_costs.h"
#include "tests/support/catch.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

test::WholeCosts costs() {
  test::WholeCosts costs;
  costs.compute = [](const sim::PriceKey& key) {
    return key.kind == OperationKind::kHost
               ? 0
               : 1e-3 * static_cast<double>(1 + key.shape.extent[0] % 7);
  };
  costs.communication = [](const sim::PriceKey& key, const sim::GroupPlacement& placement) {
    return 1e-4 * static_cast<double>(1 + key.elements % 11) * placement.slowdown;
  };
  return costs;
}

Plan plan_of_8() {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.data.kind = DataKind::kZero1;
  scenario.strategy.data.flavour = ZeroFlavour::kMegatron;
  scenario.strategy.data.degree = 2;
  scenario.strategy.tensor.degree = 2;
  scenario.strategy.pipeline.degree = 2;
  scenario.training.accumulate = 3;
  return make_plan(resolved(scenario));
}

TraceStep run(const Plan& plan, const sim::WhatIf& what_if) {
  sim::SimulationOptions options;
  options.what_if = what_if;
  ClusterSpec cluster;
  return sim::simulate(plan, cluster, costs(), options).trace.steps[0];
}

bool is_message(const Operation& op) {
  return op.kind == OperationKind::kSend || op.kind == OperationKind::kRecv;
}

/// Ranks that take part in an operation of `rank`.
std::vector<int> partners(const Plan& plan, const Operation& op, int rank) {
  if (is_message(op)) {
    return {rank, plan.mesh.with(rank, Axis::kPipeline, op.peer)};
  }
  return op.kind == OperationKind::kCollective
             ? members(plan, plan.communicators[op.communicator], rank)
             : std::vector<int>{rank};
}

/// Calls check(op, rank, duration before, duration after) for all spans of all ranks.
template <typename Check>
void for_all_spans(const Plan& plan,
                   const TraceStep& before,
                   const TraceStep& after,
                   Check&& check) {
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    const TraceTrack& a = before.track(rank);
    const TraceTrack& b = after.track(rank);
    REQUIRE(a.spans.size() == b.spans.size());
    const Program& program = plan.sections[static_cast<std::size_t>(before.section)]
                                 .programs[static_cast<std::size_t>(a.class_index)];
    for (std::size_t i = 0; i < a.spans.size(); ++i) {
      check(program.operations[a.spans[i].operation],
            rank,
            a.spans[i].ended - a.spans[i].started,
            b.spans[i].ended - b.spans[i].started);
    }
  }
}

TEST_CASE("a slow rank lengthens its compute by the factor, and no other operation anywhere") {
  const Plan plan = plan_of_8();
  sim::WhatIf slow;
  slow.slow_ranks.push_back({5, 1.5});
  const TraceStep before = run(plan, {});
  const TraceStep after = run(plan, slow);
  for_all_spans(plan, before, after, [](const Operation& op, int rank, auto was, auto is) {
    const bool hit = rank == 5 && op.kind == OperationKind::kCompute;
    // A recv may also be caught when its message is under way.
    CHECK((hit ? is == was + was / 2 : op.kind == OperationKind::kRecv || is == was));
  });
  CHECK(after.end > before.end);
}

TEST_CASE("more data on a rank lengthens its forward and backward, not its optimizer") {
  const Plan plan = plan_of_8();
  sim::WhatIf skewed;
  skewed.skewed.push_back({2, 2});
  const TraceStep before = run(plan, {});
  const TraceStep after = run(plan, skewed);
  for_all_spans(plan, before, after, [](const Operation& op, int rank, auto was, auto is) {
    const bool hit = rank == 2 && op.kind == OperationKind::kCompute &&
                     (op.phase == Phase::kForward || op.phase == Phase::kBackward ||
                      op.phase == Phase::kBackwardInput || op.phase == Phase::kBackwardWeight);
    CHECK((hit ? is == 2 * was : op.kind == OperationKind::kRecv || is == was));
  });
}

TEST_CASE("halving a rank's links doubles exactly the messages that it takes part in") {
  const Plan plan = plan_of_8();
  sim::WhatIf slow;
  slow.slow_links.push_back({3, 2});
  const TraceStep before = run(plan, {});
  const TraceStep after = run(plan, slow);
  for_all_spans(plan, before, after, [&plan](const Operation& op, int rank, auto was, auto is) {
    if (op.kind == OperationKind::kRecv) {
      return;  // as long as what is left of its message
    }
    const std::vector<int> ranks = partners(plan, op, rank);
    const bool hit = op.communicator != kNoCommunicator &&
                     std::find(ranks.begin(), ranks.end(), 3) != ranks.end();
    CHECK(is == (hit ? 2 * was : was));
  });
  CHECK(after.end > before.end);
}

TEST_CASE("jitter is the same for the same seed and another for another") {
  const Plan plan = plan_of_8();
  sim::WhatIf jitter;
  jitter.jitter = 0.1;
  const Nanoseconds first = run(plan, jitter).end;
  CHECK(run(plan, jitter).end == first);
  jitter.seed = 2;
  CHECK(run(plan, jitter).end != first);
}

TEST_CASE("an overflow skips what is guarded and takes no time for it") {
  Scenario scenario = test::tiny_gpt();
  scenario.training.precision = Precision::kFp16;
  const Plan plan = make_plan(resolved(scenario));
  sim::WhatIf overflow;
  overflow.assume_overflow = true;
  const TraceStep step = run(plan, overflow);
  const Program& program = plan.sections[static_cast<std::size_t>(step.section)].programs[0];
  int skipped = 0;
  for (const Span& span : step.track(0).spans) {
    const bool guarded = program.operations[span.operation].guard != kNoBuffer;
    CHECK((span.state == SpanState::kSkipped) == guarded);
    skipped += guarded && span.started == span.ended ? 1 : 0;
  }
  CHECK(skipped > 0);
}

TEST_CASE("what-ifs about ranks and factors that cannot be are refused") {
  const Plan plan = plan_of_8();
  sim::WhatIf bad;
  bad.slow_ranks.push_back({8, 2});
  CHECK_THROWS_AS(run(plan, bad), UsageError);
  bad.slow_ranks = {{0, 0}};
  CHECK_THROWS_AS(run(plan, bad), UsageError);
  bad.slow_ranks = {{0, -1}};
  CHECK_THROWS_AS(run(plan, bad), UsageError);
  bad = {};
  bad.failed = sim::FailedRank{-1, 0};
  CHECK_THROWS_AS(run(plan, bad), UsageError);
  bad = {};
  bad.jitter = -0.5;
  CHECK_THROWS_AS(run(plan, bad), UsageError);
}

}  // namespace
}  // namespace lockstep
