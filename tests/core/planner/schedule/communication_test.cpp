#include "core/planner/schedule/communication.h"

#include <map>
#include <random>

#include "core/error.h"
#include "tests/core/planner/schedule/schedule_support.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"

namespace lockstep {
namespace {

using test::describe;
using test::printed_row;
using test::row_texts;

TEST_CASE("sends and receives stand where PyTorch's lowering puts them") {
  for (const ScheduleKind kind : test::all_schedule_kinds()) {
    for (const test::GoldenTable& table :
         test::read_golden_tables("torch_actions_" + std::string(name_of(kind)) + ".csv")) {
      if (!table.with_communication) {
        continue;
      }
      const ScheduleRequest request{kind, table.pipeline_degree, table.chunks, table.microbatches};
      INFO(describe(request));
      const Schedule schedule = add_communication(make_schedule(request));
      for (std::size_t rank = 0; rank < table.rows.size(); ++rank) {
        CHECK(row_texts(schedule.ranks[rank]) == table.rows[rank]);
      }
    }
  }
}

TEST_CASE("the lowering of a schedule with merged backwards is PyTorch's, too") {
  int compared = 0;
  for (const test::GoldenTable& table : test::read_golden_tables("torch_actions_merged.csv")) {
    const ScheduleRequest request{
        ScheduleKind::kInterleavedZb, table.pipeline_degree, table.chunks, table.microbatches};
    INFO(describe(request));
    Schedule schedule = merge_backward(make_schedule(request));
    if (table.with_communication) {
      schedule = add_communication(schedule);
    }
    for (std::size_t rank = 0; rank < table.rows.size(); ++rank) {
      CHECK(row_texts(schedule.ranks[rank]) == table.rows[rank]);
    }
    ++compared;
  }
  CHECK(compared == 6);
}

bool is_send(ActionKind kind) {
  return kind == ActionKind::kSendForward || kind == ActionKind::kSendBackward;
}

Action partner_of(const Action& action) {
  switch (action.kind) {
    case ActionKind::kSendForward:
      return {ActionKind::kRecvForward, action.stage + 1, action.microbatch};
    case ActionKind::kRecvForward:
      return {ActionKind::kSendForward, action.stage - 1, action.microbatch};
    case ActionKind::kSendBackward:
      return {ActionKind::kRecvBackward, action.stage - 1, action.microbatch};
    default:
      return {ActionKind::kSendBackward, action.stage + 1, action.microbatch};
  }
}

/// Runs the rows as threads would with blocking calls: a send and its receive end together, when
/// both ranks stand at them. `buffered` lets a send go on alone. True when all rows end.
bool runs_to_the_end(const Schedule& schedule, bool buffered) {
  std::vector<std::size_t> next(schedule.ranks.size(), 0);
  std::map<std::string, bool> sent;
  const auto head = [&](std::size_t rank) -> const Action* {
    return next[rank] < schedule.ranks[rank].size() ? &schedule.ranks[rank][next[rank]] : nullptr;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      const Action* action = head(rank);
      if (action == nullptr) {
        continue;
      }
      if (!is_communication(action->kind)) {
        ++next[rank];
        moved = true;
        continue;
      }
      const Action partner = partner_of(*action);
      const auto peer = static_cast<std::size_t>(schedule.rank_of_stage(partner.stage));
      if (buffered) {
        if (is_send(action->kind)) {
          sent[action_text(*action)] = true;
        } else if (sent.count(action_text(partner)) == 0) {
          continue;
        }
        ++next[rank];
        moved = true;
      } else if (head(peer) != nullptr && *head(peer) == partner) {
        ++next[rank];
        ++next[peer];
        moved = true;
      }
    }
  }
  for (std::size_t rank = 0; rank < next.size(); ++rank) {
    if (head(rank) != nullptr) {
      return false;
    }
  }
  return true;
}

/// Each border between ranks carries each micro-batch once up and once down; sends directly behind
/// what makes them, receives before what needs them.
void check_messages(const Schedule& schedule) {
  std::map<std::string, int> count;
  int messages = 0;
  for (const std::vector<Action>& order : schedule.ranks) {
    std::map<std::string, bool> received;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Action& action = order[i];
      ++count[action_text(action)];
      messages += is_communication(action.kind) ? 1 : 0;
      received[action_text(action)] = true;
      if (action.kind == ActionKind::kSendForward) {
        REQUIRE(order.at(i - 1) == Action{ActionKind::kForward, action.stage, action.microbatch});
      } else if (action.kind == ActionKind::kSendBackward) {
        REQUIRE(gives_input_gradient(order.at(i - 1).kind));
        REQUIRE(order.at(i - 1).stage == action.stage);
        REQUIRE(order.at(i - 1).microbatch == action.microbatch);
      } else if (action.kind == ActionKind::kForward && action.stage > 0 &&
                 schedule.crosses_ranks_after(action.stage - 1)) {
        REQUIRE(received.count(
            action_text({ActionKind::kRecvForward, action.stage, action.microbatch})));
      } else if (gives_input_gradient(action.kind) && schedule.crosses_ranks_after(action.stage)) {
        REQUIRE(received.count(
            action_text({ActionKind::kRecvBackward, action.stage, action.microbatch})));
      }
    }
  }
  int borders = 0;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    borders += schedule.crosses_ranks_after(stage) ? 1 : 0;
  }
  REQUIRE(messages == 4 * borders * schedule.microbatches);  // send and receive, up and down
  for (const auto& [text, times] : count) {
    INFO(text);
    REQUIRE(times == 1);
  }
}

TEST_CASE("random schedules with messages run under blocking rendezvous") {
  std::mt19937_64 random(test::test_seed());
  for (int i = 0; i < test::scaled(200); ++i) {
    const ScheduleRequest request = test::random_request(random);
    INFO(describe(request));
    const Schedule compute = make_schedule(request);
    const Schedule schedule = add_communication(compute);
    check_messages(schedule);
    REQUIRE(runs_to_the_end(schedule, false));
    REQUIRE(compute_only(schedule) == compute);
    const Schedule late = add_communication(compute, ReceivePlacement::kBeforeUse);
    check_messages(late);
    REQUIRE(runs_to_the_end(late, true));
    REQUIRE(compute_only(late) == compute);
  }
}

// Semantics 15b: RECV_F before each F, SEND_F after it, RECV_B before each B, SEND_B after it.
TEST_CASE("receives before use give the canonical 1f1b sequence") {
  const Schedule schedule = add_communication(make_schedule({ScheduleKind::k1F1B, 3, 1, 3}),
                                              ReceivePlacement::kBeforeUse);
  CHECK(row_texts(schedule.ranks[0]) == printed_row("0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 "
                                                    "0RECV_B0 0B0 0RECV_B1 0B1 0RECV_B2 0B2"));
  CHECK(row_texts(schedule.ranks[1]) ==
        printed_row("1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 1RECV_B0 1B0 1SEND_B0 1RECV_F2 "
                    "1F2 1SEND_F2 1RECV_B1 1B1 1SEND_B1 1RECV_B2 1B2 1SEND_B2"));
  CHECK(row_texts(schedule.ranks[2]) ==
        printed_row("2RECV_F0 2F0 2B0 2SEND_B0 2RECV_F1 2F1 2B1 2SEND_B1 2RECV_F2 2F2 2B2 "
                    "2SEND_B2"));
}

TEST_CASE("receives before use deadlock in 1f1b if a send waits for its receive") {
  const Schedule compute = make_schedule({ScheduleKind::k1F1B, 2, 1, 4});
  CHECK_FALSE(runs_to_the_end(add_communication(compute, ReceivePlacement::kBeforeUse), false));
  CHECK(runs_to_the_end(add_communication(compute, ReceivePlacement::kWithSend), false));
}

TEST_CASE("the turn of the V and a single rank send nothing") {
  const Schedule v = add_communication(make_schedule({ScheduleKind::kZbV, 3, 2, 5}));
  for (const Action& action : v.ranks[2]) {
    const bool below = action.kind == ActionKind::kSendForward && action.stage == 2;
    const bool above = action.kind == ActionKind::kSendBackward && action.stage == 3;
    CHECK_FALSE((below || above));
  }
  const Schedule alone = make_schedule({ScheduleKind::kInterleaved, 1, 3, 4});
  CHECK(add_communication(alone) == alone);
}

TEST_CASE("a schedule gets its messages only once and never with a dependency cycle") {
  const Schedule schedule = add_communication(make_schedule({ScheduleKind::k1F1B, 2, 1, 2}));
  CHECK_THROWS_WITH(add_communication(schedule),
                    Catch::Matchers::ContainsSubstring("already there: 0SEND_F0"));
  Schedule turned = make_schedule({ScheduleKind::k1F1B, 2, 1, 2});
  std::swap(turned.ranks[0][1], turned.ranks[0][2]);  // 0F0 0B0 0F1 0B1 alone is a slow pipeline
  CHECK_NOTHROW(add_communication(turned));
  std::swap(turned.ranks[1][0], turned.ranks[1][2]);  // 1F1 1B0 1F0 1B1 cannot start
  CHECK_THROWS_WITH(add_communication(turned),
                    Catch::Matchers::ContainsSubstring("dependency cycle"));
}

TEST_CASE("large schedules hold every action and every message once") {
  const Schedule schedule = add_communication(make_schedule({ScheduleKind::kZbH1, 64, 1, 512}));
  REQUIRE(schedule.ranks.size() == 64);
  std::size_t actions = 0;
  for (const std::vector<Action>& order : schedule.ranks) {
    actions += order.size();
  }
  // F, I and W of 64 stages; send and recv of 63 edges, forward and backward.
  CHECK(actions == 512 * (3 * 64 + 4 * 63));
}

}  // namespace
}  // namespace lockstep
