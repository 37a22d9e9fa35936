#include "visualizer/models/memory_stack.h"

#include <algorithm>
#include <random>

#include "core/planner/planner.h"
#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"
#include "visualizer/models/memory_stack_text.h"

namespace lockstep::view {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("memory stack: two buffers of one rank are held as worked out by hand") {
  test::HandStep step(test::mesh_of(1, 1));
  step.rank([](ProgramBuilder& b) {
    const BufferId x = test::hand_buffer(b);  // 64 fp32 = 256 B
    test::hand_compute(b, x, x);
    const BufferId y = b.alloc(Category::kGradient, DType::kFp32, 32);
    b.compute(Work::kScale, {{32}}, {b.whole(y)}, {b.whole(y)});
    b.free(x);
    b.compute(Work::kScale, {{32}}, {b.whole(y)}, {b.whole(y)});
    b.free(y);
  });
  step.spans(0, {{0, 0, 0, 10}, {0, 10, 10, 30}, {0, 30, 30, 40}});
  const TraceIndex index(step.plan(), step.step());
  const MemoryStack stack(index, 0);
  CHECK(stack.peak_bytes() == 384);
  CHECK(stack.samples()[stack.peak()].time == 10);
  REQUIRE(stack.alive(stack.peak()).size() == 2);
  CHECK(stack.alive(stack.peak())[0].bytes == 256);
  CHECK(stack.alive(stack.peak())[0].until == 30);
  CHECK(stack.name(stack.alive(stack.peak())[0]) == "h.0.mlp");
  CHECK(stack.alive(stack.sample_at(35)).size() == 1);
  CHECK(stack.alive(stack.sample_at(35))[0].category == Category::kGradient);
  const std::vector<MemoryColumn> columns = stack.columns({0, 40}, 4);
  REQUIRE(columns.size() == 4);
  CHECK(total(columns[0].bytes) == 256);
  CHECK(total(columns[1].bytes) == 384);
  CHECK(total(columns[2].bytes) == 384);
  CHECK(total(columns[3].bytes) == 128);
  CHECK(stack.columns({20, 20}, 4).empty());
  CHECK_THAT(memory_stack_text(stack, {}, {60, false}),
             ContainsSubstring("rank 0: peak 384 B at 10 ns"));
}

TEST_CASE("memory stack: what is alive adds up to the count, and no column width loses the peak") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name);
    const Plan plan = make_plan(it.scenario, {false, false});
    const int section = test::steady_section(plan);
    const Trace trace = test::random_trace(plan, section, random);
    const TraceIndex index(plan, trace.steps[0]);
    const int rank = plan.mesh.world_size() - 1;
    const MemoryStack stack(index, rank);
    const MemoryMoment peak = highest_memory(plan, plan.class_of_rank(rank), section);
    REQUIRE(stack.samples()[stack.peak()].bytes == peak.bytes);
    for (const int count : {1, 7, 100}) {
      std::int64_t most = 0;
      for (const MemoryColumn& column : stack.columns(stack.whole(), count)) {
        most = std::max(most, total(column.bytes));
      }
      REQUIRE(most == stack.peak_bytes());
    }
    for (int i = 0; i < 20; ++i) {
      const std::size_t sample = random() % stack.samples().size();
      CategoryBytes sum{};
      for (const MemoryItem& item : stack.alive(sample)) {
        sum[static_cast<std::size_t>(item.category)] += item.bytes;
        REQUIRE(item.since <= stack.samples()[sample].time);
        REQUIRE(item.until >= stack.samples()[sample].time);
      }
      REQUIRE(sum == stack.samples()[sample].bytes);
    }
  }
}

}  // namespace
}  // namespace lockstep::view
