#include "visualizer/models/buckets.h"

#include <algorithm>
#include <map>
#include <random>
#include <sstream>

#include "core/model_presets.h"
#include "core/planner/planner.h"
#include "core/report.h"
#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"
#include "visualizer/models/buckets_text.h"

namespace lockstep::view {
namespace {

using Catch::Matchers::ContainsSubstring;

Scenario with_data(DataKind kind, std::int64_t degree) {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.data.kind = kind;
  scenario.strategy.data.degree = degree;
  return resolved(scenario);
}

/// One bucket of two gradients: parameter 1 is ready at 10 and lies in it at 14, parameter 0 at 30
/// and 34; the other rank comes to the reduction at 40.
test::HandStep one_bucket() {
  test::HandStep step(test::mesh_of(1, 2));
  const std::uint8_t dp = step.group(mask_of(Axis::kData));
  for (int rank = 0; rank < 2; ++rank) {
    step.rank([&](ProgramBuilder& b) {
      const BufferId bucket = b.alloc(Category::kCommunication, DType::kFp32, 128);
      b.at(Phase::kBackward, 1, 0);
      for (const std::int32_t parameter : {1, 0}) {
        const BufferId gradient =
            b.alloc(Category::kGradient, DType::kFp32, 64, {.parameter = parameter});
        test::hand_compute(b, gradient, gradient);
        const View source = b.whole(gradient);
        const View slot = ProgramBuilder::range(bucket, parameter == 1 ? 0 : 64, 64);
        b.compute(Work::kPack, {{64}}, {&source, 1}, {&slot, 1});
      }
      b.collective(Collective::kAllReduce,
                   dp,
                   Reduction::kSum,
                   128,
                   b.whole(bucket),
                   b.whole(bucket),
                   {.stream = Stream::kData});
    });
  }
  step.spans(0,
             {{0, 0, 0, 10}, {0, 10, 10, 14}, {0, 14, 14, 30}, {0, 30, 30, 34}, {0, 34, 40, 50}});
  step.spans(1,
             {{0, 0, 0, 10}, {0, 10, 10, 14}, {0, 14, 14, 36}, {0, 36, 36, 40}, {0, 40, 40, 50}});
  return step;
}

TEST_CASE("buckets: two gradients drop into a bucket as worked out by hand") {
  test::HandStep step = one_bucket();
  const TraceIndex index(step.plan(), step.step());
  const Buckets buckets(index, 0);
  REQUIRE(buckets.why_empty().empty());
  REQUIRE(buckets.buckets().size() == 1);
  CHECK(buckets.buckets()[0].bytes == 512);
  CHECK(buckets.buckets()[0].members == std::vector<std::int32_t>{1, 0});
  CHECK(buckets.parameters()[0].name == "h.0.mlp.weight");
  REQUIRE(buckets.launches().size() == 1);
  const BucketLaunch& it = buckets.launches()[0];
  CHECK(it.drops[0].ready == 10);
  CHECK(it.drops[0].filled == 14);
  CHECK(it.drops[1].ready == 30);
  CHECK(it.full == 34);
  CHECK(it.started == 40);
  CHECK(it.ended == 50);
  CHECK(it.last_rank == 1);
  CHECK(it.exposed == 10);
  CHECK(it.waiting == 6);
  CHECK(buckets.summary().tail.from == 30);
  CHECK(buckets.summary().tail.to == 50);
  CHECK(buckets.summary().overlap() == 0);
  const auto at = [&](Nanoseconds time) { return buckets.state(time)[0]; };
  CHECK(at(13).phase == BucketPhase::kEmpty);
  CHECK(at(14).phase == BucketPhase::kFilling);
  CHECK(at(14).filled == 0.5);
  CHECK(at(34).phase == BucketPhase::kReady);
  CHECK(at(40).phase == BucketPhase::kInFlight);
  CHECK(at(50).phase == BucketPhase::kDone);
  const std::string text = buckets_text(buckets, 40, {80, false});
  CHECK_THAT(text, ContainsSubstring("2 parameters in 1 buckets, 1 all_reduce over dp (2 ranks)"));
  CHECK_THAT(text, ContainsSubstring("in flight"));
}

TEST_CASE("buckets: GPT-2's are those that PyTorch measured") {
  for (const std::string& line : test::read_golden("ddp_buckets.csv").lines) {
    const bool unused = line.rfind("gpt2,find_unused_parameters", 0) == 0;
    if (!unused && line.rfind("gpt2,default", 0) != 0) {
      continue;
    }
    INFO(line);
    Scenario scenario = test::tiny_gpt();
    scenario.model = find_model_preset("gpt2").value();
    scenario.training.seq_len = 8;
    scenario.strategy.data.kind = DataKind::kDdp;
    scenario.strategy.data.degree = 2;
    scenario.strategy.data.find_unused_parameters = unused;
    const Plan plan = make_plan(resolved(scenario), {false, false});
    std::mt19937_64 random(1);
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const TraceIndex index(plan, trace.steps[0]);
    std::istringstream sizes(line.substr(line.rfind(',') + 1));
    std::vector<double> expected;
    for (double size = 0; sizes >> size;) {
      expected.push_back(size);
    }
    const Buckets buckets(index, 0);
    REQUIRE(buckets.buckets().size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double mib = static_cast<double>(buckets.buckets()[i].bytes) / (1 << 20);
      CHECK(mib == Approx(expected[i]).margin(0.0006));
    }
  }
}

TEST_CASE("buckets: every gradient is reduced once a pass, after it was ready") {
  std::mt19937_64 random(test::test_seed());
  int with_buckets = 0;
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name);
    const Plan plan = make_plan(it.scenario, {false, false});
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const TraceIndex index(plan, trace.steps[0]);
    const Buckets buckets(index, plan.mesh.world_size() - 1, &it.scenario.strategy.data);
    const DataKind kind = it.scenario.strategy.data.kind;
    const bool expected =
        it.scenario.strategy.data.degree > 1 &&
        (kind == DataKind::kDdp || kind == DataKind::kZero1 || kind == DataKind::kZero2);
    REQUIRE(buckets.why_empty().empty() == expected);
    if (!expected) {
      continue;
    }
    ++with_buckets;
    std::map<std::int32_t, int> reduced;
    for (const BucketLaunch& launch : buckets.launches()) {
      REQUIRE(launch.full <= launch.started);
      for (const BucketDrop& drop : launch.drops) {
        ++reduced[drop.parameter];
        REQUIRE(drop.ready <= drop.filled);
        REQUIRE(drop.filled <= launch.full);
      }
    }
    REQUIRE(reduced.size() == buckets.parameters().size());
    for (const auto& [parameter, times] : reduced) {
      REQUIRE(times == reduced.begin()->second);
    }
    for (const BucketState& state : buckets.state(buckets.whole().to)) {
      REQUIRE(state.phase == BucketPhase::kDone);
      REQUIRE(state.filled == 1);
    }
  }
  CHECK(with_buckets > 5);
}

TEST_CASE("buckets: bytes and exposed time are the report's") {
  std::mt19937_64 random(test::test_seed());
  for (const DataKind kind : {DataKind::kDdp, DataKind::kZero1, DataKind::kZero2}) {
    const Scenario scenario = with_data(kind, 3);
    const Plan plan = make_plan(scenario, {false, false});
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const Report report = make_report(plan, trace, report_facts(scenario));
    const TraceIndex index(plan, trace.steps[0]);
    const Buckets buckets(index, 1);
    double sent = 0;
    double tensors = 0;
    for (const ReportTraffic& it : report.traffic) {
      if (!it.control && (it.kind == "all_reduce" || it.kind == "reduce_scatter")) {
        sent += it.sent_bytes;
        tensors += it.tensor_bytes;
      }
    }
    CHECK(buckets.summary().sent_bytes == Approx(sent));
    CHECK(static_cast<double>(buckets.summary().tensor_bytes) == Approx(tensors));
    if (kind == DataKind::kDdp) {  // the others gather parameters over the same group
      Nanoseconds exposed = 0;
      for (std::size_t i = 0; i < report.groups.size(); ++i) {
        exposed += report.groups[i].control ? 0 : report.ranks[1].time.exposed[i];
      }
      CHECK(buckets.summary().exposed == exposed);
    }
  }
}

TEST_CASE("buckets: a view without buckets says why") {
  std::mt19937_64 random(1);
  const auto why = [&](const Scenario& scenario) {
    const Plan plan = make_plan(scenario, {false, false});
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const TraceIndex index(plan, trace.steps[0]);
    return buckets_text(Buckets(index, 0));
  };
  CHECK_THAT(why(with_data(DataKind::kFsdp, 2)), ContainsSubstring("unit by unit"));
  CHECK_THAT(why(with_data(DataKind::kDp, 2)), ContainsSubstring("device 0"));
  CHECK_THAT(why(with_data(DataKind::kDdp, 1)), ContainsSubstring("nobody"));
}

}  // namespace
}  // namespace lockstep::view
