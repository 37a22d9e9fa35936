#include "core/planner/schedule/schedule.h"

#include <map>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/names.h"
#include "core/planner/schedule/dependency.h"
#include "tests/core/planner/schedule/schedule_support.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"

namespace lockstep {
namespace {

using test::describe;
using test::printed_row;
using test::row_texts;

TEST_CASE("every generator gives PyTorch's order, action by action") {
  for (const ScheduleKind kind : test::all_schedule_kinds()) {
    int compared = 0;
    for (const test::GoldenTable& table :
         test::read_golden_tables("torch_actions_" + std::string(name_of(kind)) + ".csv")) {
      if (table.with_communication) {
        continue;
      }
      const ScheduleRequest request{kind, table.pipeline_degree, table.chunks, table.microbatches};
      INFO(describe(request));
      const Schedule schedule = make_schedule(request);
      REQUIRE(schedule.ranks.size() == table.rows.size());
      for (std::size_t rank = 0; rank < table.rows.size(); ++rank) {
        CHECK(row_texts(schedule.ranks[rank]) == table.rows[rank]);
      }
      ++compared;
    }
    CHECK(compared >= 4);
  }
}

// The two sequences as the reference prints them (semantics, section 8.3); dots are idle cells.
TEST_CASE("interleaved with P=2 V=2 M=4 is the printed sequence") {
  const Schedule schedule = make_schedule({ScheduleKind::kInterleaved, 2, 2, 4});
  CHECK(row_texts(schedule.ranks[0]) ==
        printed_row("0F0 0F1 2F0 2F1 . . 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 . 2B2 . 2B3 . 0B2 . 0B3"));
  CHECK(row_texts(schedule.ranks[1]) ==
        printed_row(". 1F0 1F1 . 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 . 1B2 . 1B3"));
}

TEST_CASE("zbv with P=2 M=4 is the printed sequence") {
  const Schedule schedule = make_schedule({ScheduleKind::kZbV, 2, 2, 4});
  CHECK(row_texts(schedule.ranks[0]) ==
        printed_row("0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 "
                    "3W3 0I2 0W2 0I3 0W3"));
  CHECK(row_texts(schedule.ranks[1]) ==
        printed_row(". 1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 "
                    "2I3 1I3 1W2 2W3 1W3"));
}

TEST_CASE("gpipe runs its backwards first in, first out") {
  const Schedule schedule = make_schedule({ScheduleKind::kGPipe, 2, 1, 3});
  CHECK(row_texts(schedule.ranks[1]) == printed_row("1F0 1F1 1F2 1B0 1B1 1B2"));
}

TEST_CASE("looped-bfs turns the order of stages and of micro-batches round for the backward") {
  const Schedule schedule = make_schedule({ScheduleKind::kLoopedBfs, 2, 2, 2});
  CHECK(row_texts(schedule.ranks[0]) == printed_row("0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0"));
}

/// Every (stage, micro-batch) exactly once forward and once backward, on the rank of the stage.
void check_complete(const Schedule& schedule) {
  std::map<std::string, int> count;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const Action& action : schedule.ranks[rank]) {
      REQUIRE(schedule.rank_of_stage(action.stage) == static_cast<std::int32_t>(rank));
      ++count[action_text(action)];
    }
  }
  std::size_t expected_kinds = 0;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    for (std::int32_t microbatch = 0; microbatch < schedule.microbatches; ++microbatch) {
      const auto times = [&](ActionKind kind) {
        const auto found = count.find(action_text({kind, stage, microbatch}));
        return found == count.end() ? 0 : found->second;
      };
      REQUIRE(times(ActionKind::kForward) == 1);
      REQUIRE(times(ActionKind::kBackwardInput) == times(ActionKind::kBackwardWeight));
      REQUIRE(times(ActionKind::kBackward) + times(ActionKind::kBackwardInput) == 1);
      expected_kinds += times(ActionKind::kBackward) == 1 ? 2 : 3;
    }
  }
  REQUIRE(count.size() == expected_kinds);
}

TEST_CASE("every legal schedule up to P=12 is complete and free of dependency cycles") {
  std::mt19937_64 random(test::test_seed());
  for (int i = 0; i < test::scaled(300); ++i) {
    const ScheduleRequest request = test::random_request(random);
    INFO(describe(request));
    const Schedule schedule = make_schedule(request);
    check_complete(schedule);
    REQUIRE(find_run_order(schedule).cycle.empty());
  }
}

TEST_CASE("the run order holds every action once and after what it needs") {
  const Schedule schedule = make_schedule({ScheduleKind::kZbV, 3, 2, 7});
  const RunOrder run = find_run_order(schedule);
  std::set<std::pair<std::int32_t, std::int32_t>> seen;
  std::set<std::string> done;
  for (const ActionPlace& place : run.order) {
    const Action& action = schedule.ranks.at(static_cast<std::size_t>(place.rank))
                               .at(static_cast<std::size_t>(place.index));
    CHECK(seen.emplace(place.rank, place.index).second);
    CHECK((place.index == 0 || seen.count({place.rank, place.index - 1}) == 1));
    if (action.kind == ActionKind::kForward && action.stage > 0) {
      CHECK(done.count(action_text({ActionKind::kForward, action.stage - 1, action.microbatch})));
    }
    if (action.kind == ActionKind::kBackwardInput && action.stage < 5) {
      CHECK(done.count(
          action_text({ActionKind::kBackwardInput, action.stage + 1, action.microbatch})));
    }
    done.insert(action_text(action));
  }
  CHECK(seen.size() == 6 * 7 * 3);
}

TEST_CASE("stages are dealt out in a loop, and in a V for zbv") {
  const Schedule loop = make_schedule({ScheduleKind::kInterleaved, 3, 2, 3});
  CHECK(loop.stage_to_rank == std::vector<std::int32_t>{0, 1, 2, 0, 1, 2});
  CHECK(loop.stage_to_chunk == std::vector<std::int32_t>{0, 0, 0, 1, 1, 1});
  CHECK(loop.crosses_ranks_after(2));
  const Schedule v = make_schedule({ScheduleKind::kZbV, 3, 2, 3});
  CHECK(v.stage_to_rank == std::vector<std::int32_t>{0, 1, 2, 2, 1, 0});
  CHECK(v.stage_to_chunk == std::vector<std::int32_t>{0, 0, 0, 1, 1, 1});
  CHECK_FALSE(v.crosses_ranks_after(2));  // the turn of the V
  CHECK_FALSE(v.crosses_ranks_after(5));  // the last stage
  for (const Schedule* schedule : {&loop, &v}) {
    for (std::int32_t stage = 0; stage < schedule->stages(); ++stage) {
      CHECK(schedule->stage_of(schedule->rank_of_stage(stage), schedule->chunk_of_stage(stage)) ==
            stage);
    }
  }
}

struct Refusal {
  ScheduleRequest request;
  std::vector<std::string> reasons;  ///< one part of each problem, in order
};

TEST_CASE("an illegal schedule is refused with every reason") {
  const std::vector<Refusal> refusals = {
      {{ScheduleKind::kGPipe, 0, 0, 0},
       {"pipeline ranks is 0", "chunks per rank is 0", "micro-batches is 0"}},
      {{ScheduleKind::k1F1B, 2, -1, 2}, {"chunks per rank is -1"}},
      {{ScheduleKind::kGPipe, 4, 1, 3}, {"at least as many micro-batches as pipeline ranks"}},
      {{ScheduleKind::k1F1B, 4, 2, 3}, {"chunks is 2, must be 1", "3 micro-batches, 4 ranks"}},
      {{ScheduleKind::kInterleaved, 4, 2, 9}, {"9 micro-batches do not divide into 2 rounds"}},
      {{ScheduleKind::kZbH1, 2, 2, 5}, {"interleaved-zb takes several", "nearest: 4 or 6"}},
      {{ScheduleKind::kInterleavedZb, 4, 2, 9}, {"nearest: 8 or 10"}},
      {{ScheduleKind::kZbV, 4, 3, 8}, {"chunks is 3, must be 2"}},
      {{ScheduleKind::kLoopedBfs, 1 << 30, 1 << 30, 1 << 30}, {"reduce the micro-batches"}},
      {{ScheduleKind::kZbV, 1000, 2, 10000}, {"more than 50000000 actions"}},
  };
  for (const Refusal& refusal : refusals) {
    INFO(describe(refusal.request));
    const std::vector<std::string> found = problems(refusal.request);
    REQUIRE(found.size() == refusal.reasons.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO(found[i]);
      CHECK(found[i].find(refusal.reasons[i]) != std::string::npos);
    }
    CHECK_THROWS_AS(make_schedule(refusal.request), UsageError);
  }
}

TEST_CASE("micro-batch counts that PyTorch takes are taken") {
  // PyTorch's own examples of its relaxed rule: M=10 (two rounds of 5) and M=3 (one round).
  CHECK(problems({ScheduleKind::kInterleaved, 4, 2, 10}).empty());
  CHECK(problems({ScheduleKind::kInterleaved, 4, 2, 3}).empty());
  CHECK(problems({ScheduleKind::kZbV, 5, 2, 1}).empty());
  CHECK(problems({ScheduleKind::kLoopedBfs, 4, 3, 1}).empty());
}

TEST_CASE("schedule names are read back, and a wrong one is answered with the nearest") {
  for (const ScheduleKind kind : test::all_schedule_kinds()) {
    CHECK(parse_name<ScheduleKind>(name_of(kind)) == kind);
    CHECK(pytorch_class_of(kind).rfind("Schedule", 0) == 0);
  }
  CHECK_FALSE(parse_name<ScheduleKind>("pipedream"));
  CHECK(not_valid_message("interleved", valid_names<ScheduleKind>()).find("\"interleaved\"") !=
        std::string::npos);
  CHECK(not_valid_message("ZB_H1", valid_names<ScheduleKind>()).find("\"zb-h1\"") !=
        std::string::npos);
}

TEST_CASE("merging joins an I only with its own W directly behind it") {
  Schedule schedule = make_schedule({ScheduleKind::kZbH1, 2, 1, 3});
  CHECK(row_texts(schedule.ranks[0]) == printed_row("0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2"));
  CHECK(row_texts(schedule.ranks[1]) == printed_row("1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2"));
  schedule = merge_backward(schedule);
  CHECK(row_texts(schedule.ranks[0]) == printed_row("0F0 0F1 0B0 0F2 0B1 0B2"));
  CHECK(row_texts(schedule.ranks[1]) == printed_row("1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2"));
}

}  // namespace
}  // namespace lockstep
