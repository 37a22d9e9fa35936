#include "visualizer/models/collective_steps.h"

#include <algorithm>
#include <bit>
#include <random>
#include <set>

#include "core/error.h"
#include "core/io/collective_io.h"
#include "executor/record_collective.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"
#include "visualizer/models/collective_steps_text.h"

namespace lockstep::view {
namespace {

using Catch::Matchers::ContainsSubstring;
using exec::Algorithm;
using exec::record_collective;

/// Three ranks, one chunk: 1 adds 0, 2 adds 1, 2 passes the sum on to both.
CollectiveRecord by_hand() {
  CollectiveRecord record;
  record.algorithm = "hand";
  record.ranks = 3;
  record.message_bytes = 8;
  const auto move = [](int step, int src, int dst, bool reduces) {
    ChunkMove it;
    it.step = step;
    it.src = src;
    it.dst = dst;
    it.bytes = 8;
    it.reduces = reduces;
    return it;
  };
  record.moves = {
      move(0, 0, 1, true), move(1, 1, 2, true), move(2, 2, 0, false), move(2, 2, 1, false)};
  return record;
}

TEST_CASE("sets of ranks are written as a person would") {
  CHECK(rank_set_text(0, 4) == ".");
  CHECK(rank_set_text(0b1111, 4) == "all");
  CHECK(rank_set_text(0b0101, 4) == "0,2");
  CHECK(rank_set_text(0b0011, 4) == "0,1");
  CHECK(rank_set_text(0b100111, 8) == "0-2,5");
  CHECK(rank_set_text(1, 1) == "0");
  CHECK(rank_set_text(~RankSet{0}, 64) == "all");
}

TEST_CASE("a chain of three ranks holds what is worked out by hand after every step") {
  const CollectiveSteps steps(by_hand());
  REQUIRE(steps.steps().size() == 3);
  CHECK(steps.problems().empty());
  CHECK(steps.holdings(0).sets == std::vector<RankSet>{0b001, 0b010, 0b100});
  CHECK(steps.holdings(1).sets == std::vector<RankSet>{0b001, 0b011, 0b100});
  CHECK(steps.holdings(2).sets == std::vector<RankSet>{0b001, 0b011, 0b111});
  CHECK(steps.holdings(3).sets == std::vector<RankSet>{0b111, 0b111, 0b111});
  CHECK(steps.phases() == std::vector<std::int32_t>{0, 2});
  CHECK(steps.sent_bytes(2) == 16);
  CHECK(steps.received_bytes(2) == 8);
  CHECK(steps.sent_in(2, 2) == 16);
  CHECK(collective_steps_text(steps).find("wrong") == std::string::npos);
}

TEST_CASE("a value that is added twice, or is missing at the end, is named") {
  CollectiveRecord twice = by_hand();
  twice.moves[1].src = 0;  // rank 1's value is lost
  const CollectiveSteps lost(twice);
  REQUIRE(lost.problems().size() == 3);
  CHECK(lost.problems()[0] == "rank 0 ends with 0,2 in chunk 0 instead of all");
  twice = by_hand();
  twice.moves.insert(twice.moves.begin() + 1, twice.moves[0]);
  const CollectiveSteps added(twice);
  REQUIRE(added.problems().size() == 1);
  CHECK(added.problems()[0] == "step 0: rank 1 adds rank 0 to chunk 0 a second time");
  CHECK_THAT(collective_steps_text(added), ContainsSubstring("wrong: step 0: rank 1 adds rank 0"));
  // Without the word on whether it adds, the same moves make no sum.
  CollectiveRecord copies = by_hand();
  copies.moves[0].reduces = false;
  CHECK_FALSE(CollectiveSteps(copies).problems().empty());
}

TEST_CASE("a ring takes 2 (N - 1) steps and sends 2 S (N - 1) / N bytes per rank") {
  for (const int ranks : {2, 3, 4, 5, 8, 16}) {
    const std::int64_t elements = std::int64_t{12} * ranks;
    const CollectiveRecord record = record_collective({.ranks = ranks, .elements = elements});
    const CollectiveSteps steps(record);
    INFO(ranks << " ranks");
    CHECK(steps.problems().empty());
    CHECK(steps.steps().size() == 2 * static_cast<std::size_t>(ranks - 1));
    CHECK(steps.phases() == std::vector<std::int32_t>{0, ranks - 1});
    CHECK(steps.chunks().size() == static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(steps.sent_bytes(rank) == 2 * 4 * elements * (ranks - 1) / ranks);
      CHECK(steps.received_bytes(rank) == steps.sent_bytes(rank));
    }
    // After s steps of adding, some rank holds s + 1 values of every chunk.
    for (int s = 0; s < ranks; ++s) {
      const Holdings now = steps.holdings(s);
      for (int chunk = 0; chunk < now.chunks; ++chunk) {
        int most = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          most = std::max(most, static_cast<int>(std::popcount(now.at(rank, chunk))));
        }
        CHECK(most == s + 1);
      }
    }
  }
}

TEST_CASE("a tree of seven takes four steps, direct two, and 2 (N - 1) S bytes or that of a ring") {
  const CollectiveSteps tree(
      record_collective({.algorithm = Algorithm::kTree, .ranks = 7, .elements = 100}));
  CHECK(tree.problems().empty());
  CHECK(tree.steps().size() == 4);
  CHECK(tree.phases() == std::vector<std::int32_t>{0, 2});
  // The root sends to its two children; a leaf sends its own values up.
  CHECK(tree.sent_bytes(0) == 800);
  CHECK(tree.sent_bytes(6) == 400);
  CHECK(tree.sent_bytes(1) == 1200);
  const CollectiveSteps direct(
      record_collective({.algorithm = Algorithm::kDirect, .ranks = 4, .elements = 256}));
  CHECK(direct.problems().empty());
  CHECK(direct.steps().size() == 2);
  CHECK(direct.sent_bytes(3) == 2 * 1024 * 3 / 4);
}

struct Wanted {
  Collective collective;
  Algorithm algorithm;
};
const Wanted kAll[] = {{Collective::kAllReduce, Algorithm::kRing},
                       {Collective::kAllReduce, Algorithm::kTree},
                       {Collective::kAllReduce, Algorithm::kDirect},
                       {Collective::kReduceScatter, Algorithm::kRing},
                       {Collective::kReduceScatter, Algorithm::kDirect},
                       {Collective::kAllGather, Algorithm::kRing},
                       {Collective::kAllGather, Algorithm::kDirect},
                       {Collective::kBroadcast, Algorithm::kTree},
                       {Collective::kBroadcast, Algorithm::kDirect},
                       {Collective::kReduce, Algorithm::kTree},
                       {Collective::kReduce, Algorithm::kDirect}};

TEST_CASE("whatever size and ranks, every collective ends with all that it owes, and goes back") {
  std::mt19937_64 random(test::test_seed());
  const auto one_of = [&](int first, int last) {
    return std::uniform_int_distribution<int>(first, last)(random);
  };
  for (int i = 0; i < test::scaled(40); ++i) {
    const Wanted& kind = kAll[one_of(0, 10)];
    const int ranks = one_of(1, 9);
    // Large ones are cut into pieces of the scratch memory.
    const std::int64_t elements = one_of(0, 3) == 0 ? one_of(1, 100'000) : one_of(1, 40);
    const DType dtype = one_of(0, 1) == 0 ? DType::kFp32 : DType::kBf16;
    const CollectiveRecord record = record_collective({.collective = kind.collective,
                                                       .algorithm = kind.algorithm,
                                                       .dtype = dtype,
                                                       .ranks = ranks,
                                                       .root = one_of(0, ranks - 1),
                                                       .elements = elements});
    INFO(name_of(kind.collective) << " " << record.algorithm << " " << ranks << " ranks, "
                                  << elements << " elements");
    const CollectiveSteps steps(record);
    CHECK(steps.problems() == std::vector<std::string>{});
    Holdings now = steps.begin();
    int forward = 0;
    while (steps.advance(now)) {
      ++forward;
    }
    CHECK(forward == static_cast<int>(steps.steps().size()));
    while (steps.step_back(now)) {
    }
    CHECK(now.sets == steps.begin().sets);
    // Sums only grow within the adding phase, and hold at most all ranks.
    for (const CollectiveStep& step : steps.steps()) {
      for (const StepMove& move : step.moves) {
        CHECK((move.after & ~all_of(ranks)) == 0);
        CHECK((!move.reduces || (move.before & ~move.after) == 0));
      }
    }
    std::int64_t sent = 0;
    std::int64_t received = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      sent += steps.sent_bytes(rank);
      received += steps.received_bytes(rank);
    }
    CHECK(sent == received);
  }
}

TEST_CASE("one lost move of a ring is found") {
  CollectiveRecord record = record_collective({.ranks = 4, .elements = 40});
  for (std::size_t i = 0; i < record.moves.size(); ++i) {
    CollectiveRecord broken = record;
    broken.moves.erase(broken.moves.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK_FALSE(CollectiveSteps(broken).problems().empty());
  }
}

TEST_CASE("a collective goes through its file unchanged") {
  const CollectiveRecord record = record_collective({.collective = Collective::kReduceScatter,
                                                     .dtype = DType::kFp16,
                                                     .ranks = 5,
                                                     .elements = 33});
  const std::string text = collective_text(record);
  const CollectiveRecord again = parse_collective(text, "test.json");
  CHECK(again.message_bytes == 70);  // 5 shards of 7 elements
  CHECK(collective_text(again) == text);
  CHECK(collective_steps_text(CollectiveSteps(again)) ==
        collective_steps_text(CollectiveSteps(record)));
}

TEST_CASE("a wrong collective file is refused in one line that says what is wrong") {
  const std::string text = collective_text(by_hand());
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    try {
      parse_collective(changed, "x.json");
    } catch (const BadInputError& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  CHECK_THAT(refused("\"src\": 0", "\"src\": 9"), ContainsSubstring("moves[0]: goes from rank 9"));
  CHECK_THAT(refused("\"ranks\": 3", "\"ranks\": 300"), ContainsSubstring("not from 1 to 64"));
  CHECK_THAT(refused("\"bytes\": 8, \"r", "\"bytes\": 9, \"r"), ContainsSubstring("do not lie in"));
  CHECK_THAT(refused("all_reduce", "all_reduces"), ContainsSubstring("all_reduce"));
  CHECK_THAT(refused("\"reduces\"", "\"reduce\""), ContainsSubstring("unknown key"));
  CHECK_THAT(refused("\"step\": 0", "\"step\": -1"), ContainsSubstring("step -1"));
  CHECK_THAT(refused("schema_version\": 1", "schema_version\": 2"), ContainsSubstring("newer"));
}

TEST_CASE("what cannot be recorded is refused, not replaced") {
  CHECK_THROWS_AS(
      record_collective(
          {.collective = Collective::kAllGather, .algorithm = Algorithm::kTree, .elements = 4}),
      UsageError);
  CHECK_THROWS_AS(record_collective({.ranks = 17, .elements = 4}), UsageError);
  CHECK_THROWS_AS(record_collective({.dtype = DType::kInt32, .elements = 4}), UsageError);
}

TEST_CASE("the first step of a ring of three is drawn as worked out by hand") {
  CollectiveRecord record = record_collective({.ranks = 3, .elements = 3});
  record.time = 1000;
  const std::string text = collective_steps_text(CollectiveSteps(record));
  // Rank r takes chunk r - 1 from its left, which began it.
  CHECK_THAT(
      text,
      ContainsSubstring("all_reduce of 12 B fp32, ring, 3 ranks, 3 chunks: 4 steps, 1.00 us\n"
                        "\n"
                        "before  chunk 0  1  2\n"
                        "rank 0        0  0  0\n"
                        "rank 1        1  1  1\n"
                        "rank 2        2  2  2\n"
                        "\n"
                        "step 0  chunk 0     1     2\n"
                        "rank 0        0     0  +0,2\n"
                        "rank 1     +0,1     1     1\n"
                        "rank 2        2  +1,2     2\n"
                        "3 moves, 12 B\n"));
  CHECK_THAT(text, ContainsSubstring("every rank ends with all"));
}

}  // namespace
}  // namespace lockstep::view
