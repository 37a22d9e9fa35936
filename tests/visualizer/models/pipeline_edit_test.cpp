#include "visualizer/models/pipeline_edit.h"

#include <algorithm>
#include <random>

#include "core/error.h"
#include "core/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"

namespace lockstep::view {
namespace {

using Catch::Matchers::ContainsSubstring;

PipelineEdit edit_of(ScheduleKind kind, int degree, int chunks, int microbatches) {
  return PipelineEdit(make_schedule({kind, degree, chunks, microbatches}));
}

std::string row_text(const Schedule& schedule, std::size_t rank) {
  std::string text;
  for (const Action& action : schedule.ranks[rank]) {
    text += (text.empty() ? "" : " ") + action_text(action);
  }
  return text;
}

TEST_CASE("a backward cannot go before its forward, and the refusal says so in words") {
  PipelineEdit edit = edit_of(ScheduleKind::k1F1B, 2, 1, 2);
  REQUIRE(row_text(edit.schedule(), 1) == "1F0 1B0 1F1 1B1");
  const Schedule before = edit.schedule();
  const std::optional<std::string> reason = edit.move({1, 1}, {1, 0});
  REQUIRE(reason);
  CHECK(*reason ==
        "1B0 cannot run before 1F0: the backward of stage 1 needs what the forward of stage 1 "
        "keeps (micro-batch 0)");
  CHECK(edit.schedule() == before);
}

TEST_CASE("a weight gradient cannot go before its input gradient, nor a chunk before its input") {
  PipelineEdit edit = edit_of(ScheduleKind::kZbV, 2, 2, 4);
  REQUIRE(row_text(edit.schedule(), 0).starts_with("0F0 0F1 0F2 3F0 3I0 3W0"));
  const std::optional<std::string> weight = edit.move({0, 5}, {0, 4});
  REQUIRE(weight);
  CHECK_THAT(*weight,
             ContainsSubstring("3W0 cannot run before 3I0: the weight gradient of stage 3"));
  const std::optional<std::string> chunk = edit.move({0, 3}, {0, 0});
  REQUIRE(chunk);
  CHECK_THAT(*chunk, ContainsSubstring("3F0 cannot run before 0F0: the forward of stage 3 needs"));
}

TEST_CASE("a circle of waits over ranks is refused with all its dependencies") {
  PipelineEdit edit = edit_of(ScheduleKind::k1F1B, 2, 1, 2);
  REQUIRE(row_text(edit.schedule(), 0) == "0F0 0F1 0B0 0B1");
  // Rank 1 does 1F1 only after 1B0, which is fine; with both forwards first it would wait for 0F1,
  // which now stands behind 0B0, which waits for 1B0.
  REQUIRE_FALSE(edit.move({1, 1}, {1, 2}));
  REQUIRE(row_text(edit.schedule(), 1) == "1F0 1F1 1B0 1B1");
  const std::optional<std::string> reason = edit.move({0, 1}, {0, 2});
  REQUIRE(reason);
  CHECK_THAT(*reason, ContainsSubstring("the ranks would wait for each other"));
  CHECK_THAT(*reason,
             ContainsSubstring("0B0 on rank 0 needs the gradient of stage 1 (1B0), which stands "
                               "behind 1F1 on rank 1"));
  CHECK_THAT(*reason,
             ContainsSubstring("1F1 on rank 1 needs the output of stage 0 (0F1), which stands "
                               "behind 0B0 on rank 0"));
}

TEST_CASE("cells stay on the rank of their stage, and only cells that exist are moved") {
  PipelineEdit edit = edit_of(ScheduleKind::k1F1B, 2, 1, 2);
  CHECK(*edit.move({0, 0}, {1, 0}) ==
        "0F0 cannot run on rank 1: the weights of stage 0 live on rank 0");
  CHECK(edit.move_and_repair({0, 0}, {1, 0}));
  CHECK(edit.move({0, 9}, {0, 0}));
  CHECK(edit.move({0, 0}, {0, 4}));
  CHECK(edit.move({-1, 0}, {0, 0}));
}

TEST_CASE("GPipe becomes 1F1B by hand, with the same time and fewer activations") {
  // 2 ranks, 2 micro-batches: rank 1 has to do 1B0 before 1F1.
  PipelineEdit edit = edit_of(ScheduleKind::kGPipe, 2, 1, 2);
  CHECK(edit.makespan() == 9);
  CHECK(edit.grid().rows[1].peak_live == 2);
  CHECK_FALSE(edit.move({1, 2}, {1, 1}));
  CHECK(edit.schedule() == make_schedule({ScheduleKind::k1F1B, 2, 1, 2}));
  CHECK(edit.makespan() == 9);
  CHECK(edit.grid().rows[1].peak_live == 1);
}

TEST_CASE("repair changes nothing that can run, and makes anything run") {
  std::mt19937_64 random(test::test_seed());
  const auto one_of = [&](std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
  };
  const ScheduleRequest requests[] = {{ScheduleKind::kGPipe, 3, 1, 4},
                                      {ScheduleKind::k1F1B, 4, 1, 6},
                                      {ScheduleKind::kInterleaved, 2, 3, 4},
                                      {ScheduleKind::kZbH1, 3, 1, 5},
                                      {ScheduleKind::kZbV, 3, 2, 5}};
  for (const ScheduleRequest& request : requests) {
    const Schedule legal = make_schedule(request);
    CHECK(repaired(legal) == legal);
    for (int i = 0; i < test::scaled(10); ++i) {
      Schedule shuffled = legal;
      for (std::vector<Action>& row : shuffled.ranks) {
        std::shuffle(row.begin(), row.end(), random);
      }
      const Schedule fixed = repaired(shuffled);
      CHECK_FALSE(broken_dependency(fixed));
      for (std::size_t rank = 0; rank < legal.ranks.size(); ++rank) {
        CHECK(std::is_permutation(fixed.ranks[rank].begin(),
                                  fixed.ranks[rank].end(),
                                  legal.ranks[rank].begin(),
                                  legal.ranks[rank].end()));
      }
    }
    // A refused move is one that breaks something, and its repair keeps the schedule alive.
    PipelineEdit edit(legal);
    for (int i = 0; i < test::scaled(20); ++i) {
      const std::size_t rank = one_of(legal.ranks.size());
      const auto place = [&] {
        return ActionPlace{static_cast<std::int32_t>(rank),
                           static_cast<std::int32_t>(one_of(legal.ranks[rank].size()))};
      };
      const ActionPlace from = place();
      const ActionPlace to = place();
      const Schedule before = edit.schedule();
      if (edit.move(from, to)) {
        CHECK(edit.schedule() == before);
        CHECK_FALSE(edit.move_and_repair(from, to));
      }
      CHECK(find_run_order(edit.schedule()).cycle.empty());
    }
  }
}

TEST_CASE("a dropped cell goes before the first cell whose middle is later") {
  PipelineEdit edit = edit_of(ScheduleKind::kGPipe, 2, 1, 2);  // rank 0: F 0-1, F 1-2, B 5-7, B 7-9
  REQUIRE(edit.grid().rows[0].cells[2].begin == 5);
  CHECK(edit.index_at({0, 3}, 0) == 0);
  CHECK(edit.index_at({0, 3}, 4) == 2);
  CHECK(edit.index_at({0, 0}, 4) == 1);
  CHECK(edit.index_at({0, 0}, 9) == 3);
}

TEST_CASE("costs set the time: with slow messages a step takes what is worked out by hand") {
  PipelineEdit edit = edit_of(ScheduleKind::k1F1B, 2, 1, 2);
  edit.set_costs({2, 3, 1, 0});
  // (M + P - 1)(F + B) with F 2 and B 4.
  CHECK(edit.makespan() == 18);
  edit.set_costs({1, 1, 1, 1});
  // 0F0 0-1, 1F0 2-3, 1B0 3-5, 1F1 5-6, 1B1 6-8, 0B0 6-8, 0B1 9-11.
  CHECK(edit.makespan() == 11);
  CHECK_THROWS_AS(edit.set_costs({-1, 1, 1, 0}), UsageError);
}

TEST_CASE("schedules go out to PyTorch's action CSV and come back") {
  const PipelineEdit edit = edit_of(ScheduleKind::kZbV, 2, 2, 4);
  CHECK(PipelineEdit::from_csv(edit.csv(), "x.csv").schedule() == edit.schedule());
  CHECK_THROWS_AS(PipelineEdit::from_csv("0F0,0B0\n0F0\n", "x.csv"), BadInputError);
}

TEST_CASE("a schedule that waits for itself is not taken, but can be repaired first") {
  Schedule broken = make_schedule({ScheduleKind::k1F1B, 2, 1, 2});
  std::swap(broken.ranks[1][0], broken.ranks[1][1]);
  CHECK_THROWS_AS(PipelineEdit(broken), UsageError);
  CHECK(PipelineEdit(repaired(broken)).schedule() == make_schedule({ScheduleKind::k1F1B, 2, 1, 2}));
}

TEST_CASE("an edited schedule becomes a scenario that is planned and simulated in its order") {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.pipeline.degree = 2;
  scenario.training.accumulate = 4;
  PipelineEdit edit(pipeline_schedule(resolved(scenario)));
  REQUIRE_FALSE(edit.move({1, 1}, {1, 2}));  // two forwards first on the last rank
  const Scenario edited = resolved(with_schedule(resolved(scenario), edit.schedule()));
  REQUIRE(validate(edited).empty());
  const Plan plan = make_plan(edited, {false, false});
  const sim::Simulation run = sim::simulate(plan, edited.cluster);
  const PipelineGrid grid = pipeline_grid(edited, plan, run.trace.steps.back());
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (std::size_t i = 0; i < grid.rows[rank].cells.size(); ++i) {
      const PipelineCell& cell = grid.rows[rank].cells[i];
      CHECK(Action{cell.kind, cell.stage, cell.microbatch} == edit.schedule().ranks[rank][i]);
    }
  }
  CHECK(grid.rows[1].peak_live == 2);
  CHECK_FALSE(bubble_formula(edited));
}

}  // namespace
}  // namespace lockstep::view
