#include "core/planner/schedule/action_csv.h"

#include <algorithm>
#include <random>

#include "core/error.h"
#include "core/planner/schedule/communication.h"
#include "core/planner/schedule/unit_time.h"
#include "tests/core/planner/schedule/schedule_support.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"

namespace lockstep {
namespace {

using test::describe;
using test::printed_row;
using test::row_texts;

std::string message_of(const std::string& text) {
  try {
    read_action_csv(text, "in.csv");
  } catch (const BadInputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("random schedules survive a trip through the CSV, with and without messages") {
  std::mt19937_64 random(test::test_seed());
  for (int i = 0; i < test::scaled(100); ++i) {
    const ScheduleRequest request = test::random_request(random);
    INFO(describe(request));
    const Schedule schedule = make_schedule(request);
    REQUIRE(read_action_csv(write_action_csv(schedule)) == schedule);
    const Schedule merged = merge_backward(schedule);
    REQUIRE(read_action_csv(write_action_csv(merged)) == merged);
    for (const ReceivePlacement placement :
         {ReceivePlacement::kWithSend, ReceivePlacement::kBeforeUse}) {
      const Schedule with_messages = add_communication(schedule, placement);
      REQUIRE(read_action_csv(write_action_csv(with_messages)) == with_messages);
    }
  }
}

TEST_CASE("tables that PyTorch wrote are read, and written back letter by letter") {
  for (const ScheduleKind kind : test::all_schedule_kinds()) {
    for (const test::GoldenTable& table :
         test::read_golden_tables("torch_actions_" + std::string(name_of(kind)) + ".csv")) {
      INFO(name_of(kind) << " M=" << table.microbatches);
      const Schedule schedule = read_action_csv(table.csv());
      CHECK(schedule.pipeline_degree == table.pipeline_degree);
      CHECK(schedule.chunks == table.chunks);
      CHECK(schedule.microbatches == table.microbatches);
      CHECK(schedule.stage_to_rank ==
            make_schedule({kind, table.pipeline_degree, table.chunks, table.microbatches})
                .stage_to_rank);
      CHECK(write_action_csv(schedule) == table.csv());
    }
  }
}

TEST_CASE("PyTorch's DualPipeV, which has no generator here, is read as a custom schedule") {
  for (const test::GoldenTable& table : test::read_golden_tables("torch_actions_dualpipev.csv")) {
    const Schedule schedule = read_action_csv(table.csv());
    const std::int32_t p = table.pipeline_degree;
    CHECK(schedule.microbatches == table.microbatches);
    CHECK(schedule.chunks == 2);
    CHECK(schedule.rank_of_stage(2 * p - 1) == 0);
    if (table.with_communication) {
      continue;
    }
    // PyTorch's lowering of the same table is the golden one behind it.
    const Schedule lowered = add_communication(schedule);
    for (const test::GoldenTable& other : test::read_golden_tables("torch_actions_dualpipev.csv")) {
      if (other.with_communication && other.pipeline_degree == p) {
        CHECK(write_action_csv(lowered) == other.csv());
      }
    }
    // Formulas 3A: one more live chunk than there are stages, which are 2 P here.
    const std::vector<std::int32_t> peaks = peak_live_chunks(schedule);
    CHECK(*std::max_element(peaks.begin(), peaks.end()) == 2 * p + 1);
  }
}

TEST_CASE("an overlapped pair is its forward and then its backward") {
  const Schedule schedule =
      read_action_csv("0F0,(0F1;0B0)OVERLAP_F_B,( 0F2 ; 0B1 )OVERLAP_F_B,0B2");
  CHECK(row_texts(schedule.ranks[0]) == printed_row("0F0 0F1 0B0 0F2 0B1 0B2"));
}

TEST_CASE("idle cells, blanks, quotes, carriage returns and a byte order mark mean nothing") {
  const Schedule plain = read_action_csv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(read_action_csv("\xef\xbb\xbf"
                        "0F0,0F1,,,0B0,0B1\r\n,1F0,\"\",1B0, 1F1 ,\"1B1\",,\r\n\r\n") == plain);
  CHECK(read_action_csv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1") == plain);
}

TEST_CASE("FSDP's actions are kept where they stand") {
  const std::string text =
      "0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0REDUCE_GRAD,0RESHARD\n"
      "1UNSHARD,1F0,1I0,1W0,1REDUCE_GRAD\n";
  const Schedule schedule = read_action_csv(text);
  CHECK(schedule.ranks[0][0] == Action{ActionKind::kUnshard, 0, kNoMicrobatch});
  CHECK(write_action_csv(schedule) == text);
  CHECK(write_action_csv(compute_only(schedule)) == "0F0,0B0\n1F0,1I0,1W0\n");
}

TEST_CASE("stages may lie on ranks in any order, as long as each rank has as many") {
  const Schedule schedule = read_action_csv("1F0,1B0\n0F0,0B0\n");
  CHECK(schedule.stage_to_rank == std::vector<std::int32_t>{1, 0});
  CHECK(schedule.stage_to_chunk == std::vector<std::int32_t>{0, 0});
}

struct BadText {
  std::string text;
  std::string place;   ///< "row:cell"
  std::string reason;  ///< part of the message
};

void check_refused(const std::vector<BadText>& table) {
  for (const BadText& bad : table) {
    INFO(bad.text.substr(0, 80));
    const std::string message = message_of(bad.text);
    INFO(message);
    CHECK(message.rfind("[schedule] in.csv:" + bad.place + ": ", 0) == 0);
    CHECK(message.find(bad.reason) != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.size() < 400);
  }
}

TEST_CASE("a cell that is no action is refused with its place and the reason") {
  check_refused({
      {"0F0,0B0\n1F0,1X0", "2:2", "\"1X0\" is not an action"},
      {"0f0,0B0", "1:1", "case counts, write \"0F0\""},
      {"0F0,0send_f0", "1:2", "case counts, write \"0SEND_F0\""},
      {"0F0,0BW0", "1:2", "which is now B"},
      {"0F0,0B0,0D0", "1:3", "expected [stage][kind][micro-batch]"},
      {"0F0,,,0F", "1:4", "no micro-batch number after F"},
      {"F0,0B0", "1:1", "no stage number before F"},
      {"0F0,0UNSHARD0", "1:2", "takes no micro-batch number"},
      {"0F0,0REDUCE_GRAD1", "1:2", "takes no micro-batch number"},
      {"0F0x,0B0", "1:1", "\"0F0x\" is not an action"},
      {"0F0;0B0", "1:1", "\"0F0;0B0\" is not an action"},
      {"-1F0", "1:1", "is not an action"},
      {"0F-1", "1:1", "is not an action"},
      {"0F0,17", "1:2", "is not an action"},
      {"# a comment\n0F0,0B0", "1:1", "is not an action"},
      {"99999999999F0", "1:1", "number that is too large"},
      {"0F2147483648", "1:1", "number that is too large"},
      {"\"0F0,0B0\"", "1:1", "quotation mark without its partner"},
      {"0\"F\"0", "1:1", "quotation mark without its partner"},
      {"0F0,(0F1;0B0)", "1:2", "not an overlapped pair"},
      {"0F0,(0F1)OVERLAP_F_B", "1:2", "not an overlapped pair"},
      {"0F0,(0F1,0B0)OVERLAP_F_B", "1:2", "not an overlapped pair"},
      {"0F0,(0B0;0F1)OVERLAP_F_B", "1:2", "other actions than a forward (F) and a backward (B)"},
      {"0F0,(0F1;0I0)OVERLAP_F_B", "1:2", "other actions"},
      {"0F0,(0F1;0F2;0B0)OVERLAP_F_B", "1:2", "is not an action"},
      {"0F0,()OVERLAP_F_B", "1:2", "not an overlapped pair"},
      {"0F0,()OVERLAP_F_B;", "1:2", "not an overlapped pair"},
      {"0F0,(;)OVERLAP_F_B", "1:2", "is not an action"},
      {"0F0,((0F1;0B0)OVERLAP_F_B;0B1)OVERLAP_F_B", "1:2", "is not an action"},
      {std::string("0F0,\xff\x00\x01", 7), "1:2", "\\xFF\\x00\\x01"},
      {"0F0," + std::string(5000, 'A'), "1:2", "AAAA...\""},
  });
}

TEST_CASE("actions that are no schedule are refused with their place and the reason") {
  check_refused({
      {"", "1:1", "no actions"},
      {" \r\n\n ", "1:1", "no actions"},
      {"0F0,0B0\n\n1F0,1B0", "2:1", "rank 1 has no actions"},
      {"0F0,0B0\n,,\n1F0,1B0", "2:1", "rank 1 has no actions"},
      {"0UNSHARD", "1:1", "stage 0 has no 0F0"},
      {"0F0", "1:1", "0F0 has no backward: neither 0B0 nor 0I0 and 0W0"},
      {"0F0,0I0", "1:2", "0I0 has no 0W0 behind it"},
      {"0F0,0W0,0I0", "1:2", "0W0 has no 0I0 before it"},
      {"0F0,0B0,0B0", "1:3", "0B0 again, first at 1:2"},
      {"0F0,0F0,0B0", "1:2", "0F0 again, first at 1:1"},
      {"0F0,0B0,0W0", "1:3", "0W0 repeats a part of 0B0 (1:2)"},
      {"0F0,0B0,0I0", "1:3", "0I0 repeats a part of 0B0 (1:2)"},
      {"0F0,0I0,0W0,0B0", "1:4", "0B0 repeats the input gradient of 0I0 (1:2)"},
      {"0B0,0F0", "1:1", "0B0 stands before its forward 0F0"},
      {"0F1,0B1", "1:1", "stage 0 has no 0F0"},
      {"0F0,0B0,0F2,0B2", "1:1", "stage 0 has no 0F1"},
      {"0F0,0F1,0B0,0B1\n1F0,1B0", "2:1", "stage 1 has no 1F1"},
      {"0F0,0B0,0W2147483646", "1:1", "stage 0 has no 0F1"},
      {"0F0,0B0\n2F0,2B0", "2:1", "stage 2 has actions, but stage 1 has none"},
      {"0F0,0B0\n2147483647F0", "2:1", "but stage 1 has none"},
      {"0F0,0B0,1F0,1B0\n1F1,2F0", "2:1", "1F1 puts stage 1 on rank 1, but 1F0 (1:3)"},
      {"0F0,0B0\n1F0,2F0,2B0,1B0", "2:1", "rank 1 holds 2 stages and rank 0 holds 1"},
  });
}

TEST_CASE("messages that do not fit are refused with their place and the reason") {
  check_refused({
      {"0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0",
       "1:3",
       "0B0 crosses ranks, but there is no 0RECV_B0"},
      {"0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0", "1:1", "there is no 0SEND_F0"},
      {"0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0", "2:1", "there is no 1RECV_F0"},
      {"0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0", "2:3", "there is no 1SEND_B0"},
      {"0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0",
       "1:1",
       "before the action that makes"},
      {"0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0",
       "2:2",
       "behind 1F0 (2:1), which needs it"},
      {"0F0,0SEND_F0,0B0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0",
       "1:4",
       "behind 0B0 (1:3), which needs it"},
      {"0F0,0SEND_F0,0SEND_F0,0B0\n1F0,1B0", "1:3", "0SEND_F0 again"},
      {"0F0,0SEND_B0,0B0\n1F0,1B0", "1:2", "no neighbouring stage on another rank"},
      {"0RECV_F0,0F0,0B0\n1F0,1B0", "1:1", "no neighbouring stage on another rank"},
      {"0F0,0B0\n1F0,1SEND_F0,1B0", "2:2", "no neighbouring stage on another rank"},
      {"0F0,0B0\n1F0,1RECV_B0,1B0", "2:2", "no neighbouring stage on another rank"},
      {"0F0,0SEND_F0,1F0,1B0,0B0", "1:2", "no neighbouring stage on another rank"},
  });
}

TEST_CASE("a deadlock is refused with the actions that wait for each other") {
  check_refused({
      // Rank 0 wants the gradient of micro-batch 0 before it sends 1; rank 1 the opposite.
      {"0F0,0B0,0F1,0B1\n1F1,1F0,1B1,1B0",
       "1:2",
       "rank 0: 0B0 waits for 1B0 of rank 1; rank 1: 1F1 waits for 0F1 of rank 0"},
      // One rank, two stages, wrong order.
      {"1F0,0F0,1B0,0B0", "1:1", "rank 0: 1F0 waits for 0F0 of rank 0"},
      {"0F0,1F0,0B0,1B0", "1:3", "rank 0: 0B0 waits for 1B0 of rank 0"},
      // Messages in place, but each rank receives before it sends.
      {"0F0,0SEND_F0,0RECV_B0,0B0,0F1,0SEND_F1,0RECV_B1,0B1\n"
       "1RECV_F1,1F1,1RECV_F0,1F0,1B0,1SEND_B0,1B1,1SEND_B1",
       "1:3",
       "0RECV_B0 waits for 1SEND_B0 of rank 1; rank 1: 1RECV_F1 waits for 0SEND_F1"},
  });
}

TEST_CASE("leaving out or doubling any cell of a schedule is noticed") {
  for (const ScheduleRequest& request : {ScheduleRequest{ScheduleKind::kZbV, 3, 2, 4},
                                         ScheduleRequest{ScheduleKind::kInterleaved, 2, 2, 4},
                                         ScheduleRequest{ScheduleKind::kZbH1, 4, 1, 4}}) {
    for (const bool with_messages : {false, true}) {
      Schedule schedule = make_schedule(request);
      schedule = with_messages ? add_communication(schedule) : schedule;
      for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
        for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
          INFO(describe(request) << " " << action_text(schedule.ranks[rank][i]));
          const auto at = static_cast<std::ptrdiff_t>(i);
          Schedule fewer = schedule;
          fewer.ranks[rank].erase(fewer.ranks[rank].begin() + at);
          CHECK_THROWS_AS(read_action_csv(write_action_csv(fewer)), BadInputError);
          Schedule more = schedule;
          more.ranks[rank].push_back(schedule.ranks[rank][i]);
          CHECK_THROWS_AS(read_action_csv(write_action_csv(more)), BadInputError);
        }
      }
    }
  }
}

TEST_CASE("shuffled and damaged tables are read or refused, nothing else") {
  std::mt19937_64 random(test::test_seed());
  const auto below = [&random](std::size_t limit) { return random() % limit; };
  const std::string letters = "0123456789FBIW,;()\n\"_SENDRCV \r";
  for (int i = 0; i < test::scaled(2000); ++i) {
    const Schedule schedule = add_communication(make_schedule({ScheduleKind::kZbV, 2, 2, 2}));
    std::string text = write_action_csv(schedule);
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
      text[below(text.size())] = letters[below(letters.size())];
    }
    try {
      const Schedule read = read_action_csv(text);
      REQUIRE(read_action_csv(write_action_csv(read)) == read);
    } catch (const BadInputError&) {
    }
  }
}

TEST_CASE("a file of 227,328 cells is read") {
  const std::string text =
      write_action_csv(add_communication(make_schedule({ScheduleKind::kZbH1, 64, 1, 512})));
  const Schedule read = read_action_csv(text);
  CHECK(read.microbatches == 512);
  CHECK(write_action_csv(read) == text);
}

}  // namespace
}  // namespace lockstep
