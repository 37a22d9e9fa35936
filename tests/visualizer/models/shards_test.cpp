#include "visualizer/models/shards.h"

#include <algorithm>
#include <random>

#include "core/memory_timeline.h"
#include "core/planner/planner.h"
#include "core/report.h"
#include "tests/support/catch.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"
#include "visualizer/models/shards_text.h"

namespace lockstep::view {
namespace {

using Catch::Matchers::ContainsSubstring;

Scenario with_data(DataKind kind, std::int64_t degree) {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.data.kind = kind;
  scenario.strategy.data.degree = degree;
  scenario.strategy.data.replicate = kind == DataKind::kHsdp ? 2 : 1;
  return resolved(scenario);
}

bool in_order(const std::vector<ShardInterval>& row) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i].begin >= row[i].end || (i > 0 && row[i - 1].end > row[i].begin)) {
      return false;
    }
  }
  return true;
}

TEST_CASE("shards: FSDP gathers the root once and every block twice, and scatters each once") {
  std::mt19937_64 random(test::test_seed());
  const Scenario scenario = with_data(DataKind::kFsdp, 3);
  const Plan plan = make_plan(scenario, {false, false});
  const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
  const TraceIndex index(plan, trace.steps[0]);
  const Shards shards(index, 2);
  REQUIRE(shards.units().size() == 3);
  CHECK(shards.units()[0].name == "embedding+head");
  CHECK(shards.units()[1].name == "h.0");
  CHECK(shards.units()[1].shards == 3);
  CHECK(shards.gathers().messages == 1 + 2 * 2);
  CHECK(shards.reductions().messages == 3);
  for (const ShardUnit& unit : shards.units()) {
    const auto count = [&](const std::vector<ShardInterval>& row, ShardStage stage) {
      return std::count_if(
          row.begin(), row.end(), [&](const ShardInterval& it) { return it.stage == stage; });
    };
    CHECK(count(unit.parameters, ShardStage::kGathering) ==
          (unit.name == "h.0" || unit.name == "h.1" ? 2 : 1));
    CHECK(count(unit.parameters, ShardStage::kUsed) == 2);
    CHECK(count(unit.gradients, ShardStage::kFull) == 1);
    CHECK(count(unit.gradients, ShardStage::kReducing) == 1);
  }
  const std::string text = shards_text(shards, MemoryStack(index, 2), 0, {100, false});
  CHECK_THAT(text, ContainsSubstring("rank 2: 3 units cut over 3 ranks"));
}

TEST_CASE("shards: bytes and what the peak holds are the report's") {
  std::mt19937_64 random(test::test_seed());
  for (const DataKind kind : {DataKind::kFsdp, DataKind::kZero3, DataKind::kHsdp}) {
    const Scenario scenario = with_data(kind, 4);
    const Plan plan = make_plan(scenario, {false, false});
    const int section = test::steady_section(plan);
    const Trace trace = test::random_trace(plan, section, random);
    const Report report = make_report(plan, trace, report_facts(scenario));
    const TraceIndex index(plan, trace.steps[0]);
    const Shards shards(index, 1);
    double gathered = 0;
    double reduced = 0;
    for (const ReportTraffic& it : report.traffic) {
      gathered += it.kind == "all_gather" ? it.tensor_bytes : 0;
      reduced += !it.control && it.kind != "all_gather" ? it.tensor_bytes : 0;
    }
    CHECK(static_cast<double>(shards.gathers().tensor_bytes) == Approx(gathered));
    CHECK(static_cast<double>(shards.reductions().tensor_bytes) == Approx(reduced));
    Nanoseconds exposed = 0;
    for (std::size_t i = 0; i < report.groups.size(); ++i) {
      exposed += report.groups[i].control ? 0 : report.ranks[1].time.exposed[i];
    }
    CHECK(shards.gathers().exposed + shards.reductions().exposed <= exposed);
    const CategoryBytes peak = highest_memory(plan, plan.class_of_rank(1), section).bytes;
    std::int64_t parameters = 0;
    std::int64_t gradients = 0;
    for (const PeakHolder& it : shards.peak_holders()) {
      parameters += it.parameter_bytes;
      gradients += it.gradient_bytes;
    }
    CHECK(parameters == peak[static_cast<std::size_t>(Category::kGatheredParameter)]);
    CHECK(gradients == peak[static_cast<std::size_t>(Category::kGradient)]);
  }
}

TEST_CASE("shards: intervals follow one another, and the state is the interval's") {
  std::mt19937_64 random(test::test_seed());
  int with_units = 0;
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name);
    const Plan plan = make_plan(it.scenario, {false, false});
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const TraceIndex index(plan, trace.steps[0]);
    const Shards shards(index, plan.mesh.world_size() - 1);
    const DataKind kind = it.scenario.strategy.data.kind;
    const bool expected = it.scenario.strategy.data.degree > 1 && kind >= DataKind::kZero3;
    REQUIRE(shards.why_empty().empty() == expected);
    with_units += expected ? 1 : 0;
    for (std::size_t unit = 0; unit < shards.units().size(); ++unit) {
      const ShardUnit& here = shards.units()[unit];
      INFO(here.name);
      REQUIRE(in_order(here.parameters));
      REQUIRE(in_order(here.gradients));
      REQUIRE(!here.parameters.empty());
      for (const ShardInterval& interval : here.parameters) {
        REQUIRE(shards.state(interval.begin)[unit].parameters == interval.stage);
      }
      for (const ShardInterval& interval : here.gradients) {
        REQUIRE(shards.state(interval.end - 1)[unit].gradients == interval.stage);
      }
    }
  }
  CHECK(with_units > 3);
}

}  // namespace
}  // namespace lockstep::view
