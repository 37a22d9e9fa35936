#include "visualizer/models/pipeline_grid.h"

#include <random>

#include "core/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/support/catch.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"
#include "visualizer/models/pipeline_grid_text.h"

namespace lockstep::view {
namespace {

using Catch::Matchers::ContainsSubstring;

std::vector<std::int64_t> peaks_of(const PipelineGrid& grid) {
  std::vector<std::int64_t> peaks;
  for (const PipelineRow& row : grid.rows) {
    peaks.push_back(row.peak_live);
  }
  return peaks;
}

struct Golden {
  ScheduleRequest request;
  double makespan;
  double bubble;
  std::vector<std::int64_t> peaks;
};

// Makespan and bubble from the event simulation of PyTorch 2.7's generators, forward 1, backward 2.
const Golden kGolden[] = {
    {{ScheduleKind::kGPipe, 2, 1, 4}, 15, .200, {4, 4}},
    {{ScheduleKind::k1F1B, 2, 1, 4}, 15, .200, {2, 1}},
    {{ScheduleKind::kInterleaved, 2, 2, 4}, 13.5, .111, {5, 3}},
    {{ScheduleKind::kLoopedBfs, 2, 2, 4}, 13.5, .111, {8, 8}},
    {{ScheduleKind::kZbV, 2, 2, 4}, 12.5, .040, {4, 4}},
    {{ScheduleKind::k1F1B, 4, 1, 8}, 33, .2727, {4, 3, 2, 1}},
    {{ScheduleKind::kInterleaved, 4, 2, 8}, 28.5, .1579, {11, 9, 7, 5}},
    {{ScheduleKind::kInterleavedZb, 4, 2, 8}, 25.5, .0588, {8, 8, 8, 8}},
    {{ScheduleKind::kZbV, 4, 2, 16}, 49.5, .0303, {8, 8, 8, 8}},
    {{ScheduleKind::kZbH1, 4, 1, 8}, 27, .1111, {4, 4, 4, 4}},
};

TEST_CASE(
    "unit grids have the makespans, bubbles and peaks that were measured, and the formula's") {
  for (const Golden& golden : kGolden) {
    INFO(name_of(golden.request.kind) << " " << golden.request.pipeline_degree);
    const PipelineGrid grid = pipeline_grid(make_schedule(golden.request), {});
    CHECK(static_cast<double>(grid.end) / static_cast<double>(grid.ticks_per_unit) ==
          Approx(golden.makespan));
    CHECK(grid.bubble() == Approx(golden.bubble).margin(0.0006));
    CHECK(peaks_of(grid) == golden.peaks);
    const std::optional<BubbleFormula> formula = bubble_formula(golden.request);
    REQUIRE(formula);
    CHECK(formula->fraction == Approx(grid.bubble()));
  }
}

TEST_CASE("where there is a formula, it is the bubble of the unit grid, for all small pipelines") {
  int compared = 0;
  for (int kind = 0; kind < kScheduleKindCount; ++kind) {
    for (int degree = 2; degree <= 5; ++degree) {
      for (int chunks = 1; chunks <= 3; ++chunks) {
        for (int microbatches = 1; microbatches <= 12; ++microbatches) {
          const ScheduleRequest request{
              static_cast<ScheduleKind>(kind), degree, chunks, microbatches};
          const std::optional<BubbleFormula> formula = bubble_formula(request);
          if (formula) {
            INFO(formula->text() << " P " << degree << " V " << chunks << " M " << microbatches);
            CHECK(pipeline_grid(make_schedule(request), {}).bubble() == Approx(formula->fraction));
            ++compared;
          }
        }
      }
    }
  }
  CHECK(compared > 100);
}

TEST_CASE("formulas are written with their values put in") {
  const std::optional<BubbleFormula> formula = bubble_formula({ScheduleKind::k1F1B, 4, 1, 8});
  REQUIRE(formula);
  CHECK(formula->text() == "1f1b: (P-1) / (M + P-1) = 3 / (8 + 3) = 27.3 %");
  CHECK(bubble_formula({ScheduleKind::kInterleaved, 4, 2, 8})->values == "3 / (2 x 8 + 3)");
  CHECK_FALSE(bubble_formula({ScheduleKind::kZbV, 4, 2, 6}));
}

TEST_CASE("cells of a plan's trace are the schedule's actions in its order, for every strategy") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    if (it.scenario.strategy.pipeline.degree < 2) {
      continue;
    }
    INFO(it.name);
    const Plan plan = make_plan(it.scenario, {false, false});
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const PipelineGrid grid = pipeline_grid(it.scenario, plan, trace.steps.front());
    const Schedule schedule = compute_only(pipeline_schedule(it.scenario));
    REQUIRE(grid.rows.size() == schedule.ranks.size());
    for (std::size_t rank = 0; rank < grid.rows.size(); ++rank) {
      const PipelineRow& row = grid.rows[rank];
      std::string expected;
      for (const Action& action : schedule.ranks[rank]) {
        expected += action_text(action) + " ";
      }
      std::string found;
      std::int64_t end = 0;
      for (const PipelineCell& cell : row.cells) {
        found += action_text({cell.kind, cell.stage, cell.microbatch}) + " ";
        CHECK(cell.begin >= end);
        CHECK(cell.busy <= cell.end - cell.begin);
        end = cell.end;
      }
      CHECK(found == expected);
      CHECK(row.peak_live == peak_live_chunks(schedule)[rank]);
      CHECK(row.live.back().count == 0);
      CHECK(row.peak_activation_bytes > 0);
    }
  }
}

TEST_CASE("without a pipeline a rank is one row of forward and backward in turn") {
  Scenario scenario = test::tiny_gpt();
  scenario.training.accumulate = 3;
  const Scenario done = resolved(scenario);
  const Plan plan = make_plan(done, {false, false});
  std::mt19937_64 random(test::test_seed());
  const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
  const PipelineGrid grid = pipeline_grid(done, plan, trace.steps.front());
  REQUIRE(grid.rows.size() == 1);
  REQUIRE(grid.rows[0].cells.size() == 6);
  CHECK(grid.rows[0].cells[3].kind == ActionKind::kBackward);
  CHECK(grid.rows[0].cells[3].microbatch == 1);
  CHECK(grid.rows[0].peak_live == 1);
  CHECK_FALSE(bubble_formula(done));
}

TEST_CASE("messages delay what waits for them and nothing else") {
  // Two stages, one micro-batch, forward 1, backward 2: 6 units; with messages of 3 units, one
  // forward and one backward, 12.
  const Schedule schedule = make_schedule({ScheduleKind::kLoopedBfs, 2, 1, 1});
  CHECK(pipeline_grid(schedule, {}).end == 6);
  CHECK(pipeline_grid(schedule, {1, 1, 1, 3}).end == 12);
  // In a V, the turn stays on its rank: stages 0 1 1' 0' have two borders between ranks, passed
  // forward and backward, and 4 chunks of half a unit forward and of one backward.
  const Schedule v = make_schedule({ScheduleKind::kZbV, 2, 2, 1});
  const double free = static_cast<double>(pipeline_grid(v, {}).end) / 2;
  const double priced = static_cast<double>(pipeline_grid(v, {1, 1, 1, 3}).end) / 2;
  CHECK(priced - free == Approx(12));
}

TEST_CASE("a pipeline of two ranks is drawn as worked out by hand") {
  const PipelineGrid grid = pipeline_grid(make_schedule({ScheduleKind::k1F1B, 2, 1, 2}), {});
  // 8 columns of label and 32 for the picture: three for each of 9 units. Rank 1: F0 1-2, B0 2-4,
  // F1 4-5, B1 5-7; rank 0: F0 0-1, F1 1-2, B0 4-6, B1 7-9.
  const std::string text =
      pipeline_grid_text(grid, bubble_formula({ScheduleKind::k1F1B, 2, 1, 2}), {.width = 40});
  CHECK_THAT(text,
             ContainsSubstring("rank 0  F0FF1F......B0BBBB...B1BBBB\n"
                               "        111222222222222222111111111\n"
                               "rank 1  ...F0FB0BBBBF1FB1BBBB......\n"
                               "           111111111111111111\n"));
  CHECK_THAT(text, ContainsSubstring("first to last cell 9 units, bubble 33.3 %"));
  CHECK_THAT(text, ContainsSubstring("1f1b: (P-1) / (M + P-1) = 1 / (2 + 1) = 33.3 %"));
}

TEST_CASE("a simulated step is drawn beside its schedule in unit time") {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.pipeline.degree = 2;
  scenario.training.accumulate = 4;
  const Scenario done = resolved(scenario);
  const Plan plan = make_plan(done, {false, false});
  const sim::Simulation run = sim::simulate(plan, done.cluster);
  const std::string text = pipeline_text(done, plan, run.trace.steps.back());
  CHECK_THAT(text, ContainsSubstring("peak activations"));
  CHECK_THAT(text, ContainsSubstring("first to last cell 15 units, bubble 20.0 %"));
  for (const char c : text) {
    CHECK((c == '\n' || (c >= ' ' && c <= '~')));
  }
}

}  // namespace
}  // namespace lockstep::view
