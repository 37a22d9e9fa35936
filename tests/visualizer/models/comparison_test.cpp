#include "visualizer/models/comparison.h"

#include <cmath>
#include <random>

#include "core/planner/planner.h"
#include "core/report.h"
#include "simulator/simulate.h"
#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"
#include "visualizer/models/comparison_text.h"

namespace lockstep::view {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::HandStep;
using test::mesh_of;

/// Two ranks that compute twice and sum; the second computation of rank 0 takes `second`.
HandStep two_ranks(Nanoseconds second) {
  HandStep step(mesh_of(1, 2));
  const std::uint8_t dp = step.group(mask_of(Axis::kData));
  for (int rank = 0; rank < 2; ++rank) {
    step.rank([&](ProgramBuilder& b) {
      const BufferId x = test::hand_buffer(b);
      test::hand_compute(b, x, x);
      test::hand_compute(b, x, x);
      test::hand_all_reduce(b, dp, x);
    });
  }
  const Nanoseconds end = 10 + second;
  step.spans(0, {{0, 0, 0, 10}, {0, 10, 10, end}, {0, end, end, end + 20}});
  step.spans(1, {{0, 0, 0, 10}, {0, 10, 10, 15}, {0, 15, end, end + 20}});
  step.end(end + 20);
  return step;
}

Scenario small(DataKind kind) {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.data.kind = kind;
  scenario.strategy.data.degree = 2;
  scenario.training.accumulate = 2;
  return resolved(scenario);
}

TEST_CASE("a step compared with itself differs nowhere") {
  std::mt19937_64 random(test::test_seed());
  const Scenario scenario = small(DataKind::kFsdp);
  const Plan plan = make_plan(scenario, {false, false});
  const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
  const TraceStep& step = trace.steps.front();
  const Comparison it({plan, step}, {plan, step});
  CHECK(it.same_plan());
  REQUIRE_FALSE(it.differences().empty());
  for (const OperationDifference& difference : it.differences()) {
    CHECK(difference.difference() == 0);
  }
  CHECK(it.only_a().empty());
  CHECK(it.only_b().empty());
  double sum = 0;
  for (const SumDifference& part : it.split()) {
    CHECK(part.a == part.b);
    sum += part.a;
  }
  CHECK(sum == Approx(static_cast<double>(it.a_length())));
  for (const SumDifference& part : it.families()) {
    CHECK(part.a == part.b);
  }
  CHECK_THAT(comparison_text(it), ContainsSubstring("took the same time"));
}

TEST_CASE("one operation that took longer is the one difference, named and with its time") {
  HandStep a = two_ranks(30);
  HandStep b = two_ranks(42);
  const Comparison it({a.plan(), a.step()}, {b.plan(), b.step()});
  CHECK(it.same_plan());
  REQUIRE(it.differences().size() == 6);
  const OperationDifference& first = it.differences().front();
  CHECK(first.rank == 0);
  CHECK(first.a == 30);
  CHECK(first.b == 42);
  CHECK(it.differences()[1].difference() == 0);
  // Compute of rank 0 grew by 12, waiting of rank 1: halves of that are the means.
  for (const SumDifference& part : it.split()) {
    const double expected = part.name == "compute" || part.name == "waiting dp" ? 6 : 0;
    INFO(part.name);
    CHECK(part.difference() == Approx(expected));
  }
  const std::string text = comparison_text(it, {"before", "after"});
  CHECK_THAT(text, ContainsSubstring("A before: 60 ns   B after: 72 ns   B - A: +12 ns (+20.0 %)"));
  CHECK_THAT(text, ContainsSubstring("0     30 ns  42 ns  +12 ns"));
  CHECK_THAT(text, ContainsSubstring("1 of 6 pairs of operations differ"));
}

TEST_CASE("lengthening any one operation of a real plan shows exactly that operation") {
  std::mt19937_64 random(test::test_seed());
  const Plan plan = make_plan(small(DataKind::kDdp), {false, false});
  const Trace before = test::random_trace(plan, test::steady_section(plan), random);
  for (int i = 0; i < test::scaled(10); ++i) {
    Trace after = before;
    TraceTrack& track = after.steps[0].tracks[1];
    const std::size_t at =
        std::uniform_int_distribution<std::size_t>(0, track.spans.size() - 1)(random);
    track.spans[at].ended += 777;
    after.steps[0].end += 777;
    const Comparison it({plan, before.steps[0]}, {plan, after.steps[0]});
    CHECK(it.differences()[0].difference() == 777);
    CHECK(it.differences()[0].a_operation == track.spans[at].operation);
    CHECK(it.differences()[0].rank == 1);
    CHECK(it.differences()[1].difference() == 0);
  }
}

TEST_CASE("two strategies share their computation, and what they send is listed apart") {
  const Plan ddp = make_plan(small(DataKind::kDdp), {false, false});
  const Plan fsdp = make_plan(small(DataKind::kFsdp), {false, false});
  const Scenario scenario = small(DataKind::kDdp);
  const sim::Simulation a = sim::simulate(ddp, scenario.cluster);
  const sim::Simulation b = sim::simulate(fsdp, scenario.cluster);
  const Comparison it({ddp, a.trace.steps.back()}, {fsdp, b.trace.steps.back()});
  CHECK_FALSE(it.same_plan());
  int products = 0;
  for (const OperationDifference& difference : it.differences()) {
    products += it.name_of(difference).starts_with("matmul, ") ? 1 : 0;
  }
  // Forward products of 2 blocks of 4 and the head, twice: none is without a partner.
  CHECK(products == 2 * (2 * 4 + 1));
  bool reduces = false;
  for (const LoneOperation& lone : it.only_a()) {
    CHECK_FALSE(it.name_of_a(lone).starts_with("matmul"));
    reduces = reduces || it.name_of_a(lone).starts_with("all_reduce dp");
  }
  CHECK(reduces);
  bool gathers = false;
  for (const LoneOperation& lone : it.only_b()) {
    gathers = gathers || it.name_of_b(lone).starts_with("all_gather dp");
  }
  CHECK(gathers);
  // The sums are those of the reports.
  const Report report = make_report(ddp, a.trace, report_facts(scenario));
  for (const SumDifference& part : it.split()) {
    if (part.name == "compute") {
      double compute = 0;
      for (const RankReport& rank : report.ranks) {
        compute += static_cast<double>(rank.time.compute) * rank.count / 2;
      }
      CHECK(part.a == Approx(compute));
    }
  }
  const std::string text = comparison_text(it, {"ddp", "fsdp", 3});
  CHECK_THAT(text, ContainsSubstring("two plans"));
  CHECK_THAT(text, ContainsSubstring("only in B"));
}

TEST_CASE("a comparison with more ranks holds those against each other that both have") {
  Scenario larger = small(DataKind::kDdp);
  larger.strategy.data.degree = 4;
  const Plan two = make_plan(small(DataKind::kDdp), {false, false});
  const Plan four = make_plan(resolved(larger), {false, false});
  std::mt19937_64 random(test::test_seed());
  const Trace a = test::random_trace(two, test::steady_section(two), random);
  const Trace b = test::random_trace(four, test::steady_section(four), random);
  const Comparison it({two, a.steps[0]}, {four, b.steps[0]});
  CHECK(it.ranks_without_partner() == 2);
  for (const OperationDifference& difference : it.differences()) {
    CHECK(difference.rank < 2);
  }
  CHECK_THAT(comparison_text(it), ContainsSubstring("2 ranks are only in one of them"));
  // The other way round, the same pairs with the other sign.
  const Comparison back({four, b.steps[0]}, {two, a.steps[0]});
  REQUIRE(back.differences().size() == it.differences().size());
  CHECK(back.differences()[0].difference() == -it.differences()[0].difference());
  CHECK(back.only_a().size() == it.only_b().size());
}

TEST_CASE("a window of one step is found in the other by the clock, from its begin, or stretched") {
  HandStep a = two_ranks(30);  // 60 ns
  HandStep b = two_ranks(90);  // 120 ns
  TraceStep late = b.step();
  late.begin += 1000;
  late.end += 1000;
  const Comparison it({a.plan(), a.step()}, {b.plan(), late});
  const TimeWindow window{15, 30};
  CHECK(it.in_b(window, Sync::kSameTime).from == 15);
  CHECK(it.in_b(window, Sync::kStepBegin).from == 1015);
  CHECK(it.in_b(window, Sync::kStepBegin).to == 1030);
  CHECK(it.in_b(window, Sync::kWholeStep).from == 1030);
  CHECK(it.in_b(window, Sync::kWholeStep).to == 1060);
  for (const Sync sync : {Sync::kSameTime, Sync::kStepBegin, Sync::kWholeStep}) {
    const TimeWindow back = it.in_a(it.in_b(window, sync), sync);
    CHECK(back.from == window.from);
    CHECK(back.to == window.to);
  }
}

}  // namespace
}  // namespace lockstep::view
