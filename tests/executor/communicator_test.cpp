// What a communicator is besides its arithmetic: order, records, splits, messages, moves, throttle.
#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "executor/cpu_device.h"
#include "executor/local_communicator.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"
#include "tests/support/spawn_ranks.h"

namespace lockstep::exec {
namespace {

using namespace std::chrono_literals;

constexpr StreamId kData = stream_id(Stream::kData);
constexpr StreamId kTensor = stream_id(Stream::kTensor);

Transfer sum_of(std::vector<float>& values, Algorithm algorithm = Algorithm::kAuto) {
  return {.reduction = Reduction::kSum,
          .algorithm = algorithm,
          .elements = static_cast<std::int64_t>(values.size()),
          .in = values.data(),
          .out = values.data()};
}

template <typename T>
Transfer message(OperationKind kind, int peer, std::uint32_t tag, std::vector<T>& values) {
  return {.kind = kind,
          .dtype = sizeof(T) == 8 ? DType::kFp64 : DType::kFp32,
          .peer = static_cast<std::int16_t>(peer),
          .tag = tag,
          .elements = static_cast<std::int64_t>(values.size()),
          .in = values.data(),
          .out = values.data()};
}

// ---- issue -------------------------------------------------------------------------------------

TEST_CASE("issued transfers run beside the host, in order, on the stream that was named") {
  constexpr int kRanks = 3;
  auto communicators = make_local_communicators(kRanks);
  test::spawn_ranks(kRanks, [&](int rank) {
    CpuDevice device;
    Communicator& communicator = *communicators[static_cast<std::size_t>(rank)];
    std::vector<float> x(1000, static_cast<float>(rank + 1));
    std::vector<float> y(2000, 1);
    // Two streams of one communicator: its own order holds, or members would meet crosswise.
    for (int i = 0; i < 50; ++i) {
      communicator.issue(device, kData, sum_of(x));
      communicator.issue(device, kTensor, sum_of(y));
      device.enqueue(kData, make_task([data = x.data()] { std::fill_n(data, 1000, data[0] / 6); }));
      device.enqueue(kTensor, make_task([data = y.data()] { std::fill_n(data, 2000, 1.0F); }));
      device.enqueue(kData, make_task([data = x.data(), rank] {
                       std::fill_n(data, 1000, data[0] * static_cast<float>(rank + 1));
                     }));
    }
    device.synchronize();
    RANK_CHECK(x == std::vector<float>(1000, static_cast<float>(rank + 1)));
  });
}

TEST_CASE("everything issued is recorded, in order") {
  auto communicators = make_local_communicators(2);
  test::spawn_ranks(2, [&](int rank) {
    Communicator& communicator = *communicators[static_cast<std::size_t>(rank)];
    std::vector<float> x(8, 1);
    communicator.run(sum_of(x));
    communicator.run({.collective = Collective::kBroadcast,
                      .dtype = DType::kBf16,
                      .peer = 1,
                      .elements = 5,
                      .in = x.data(),
                      .out = x.data()});
    communicator.run(
        message(rank == 0 ? OperationKind::kSend : OperationKind::kRecv, 1 - rank, 9, x));
    const auto issued = communicator.issued();
    RANK_CHECK(issued.size() == 3);
    RANK_CHECK(issued[0] == IssuedTransfer{OperationKind::kCollective,
                                           Collective::kAllReduce,
                                           Reduction::kSum,
                                           DType::kFp32,
                                           -1,
                                           0,
                                           8});
    RANK_CHECK(issued[1].collective == Collective::kBroadcast);
    RANK_CHECK(issued[1].dtype == DType::kBf16);
    RANK_CHECK(issued[1].peer == 1);
    RANK_CHECK(issued[2].kind == (rank == 0 ? OperationKind::kSend : OperationKind::kRecv));
    RANK_CHECK(issued[2].tag == 9);
    communicator.forget_issued();
    RANK_CHECK(communicator.issued().empty());
    communicator.run(sum_of(x));  // a collective after a message
    RANK_CHECK(communicator.issued().size() == 1);
  });
}

TEST_CASE("times tell who was waited for") {
  auto communicators = make_local_communicators(2);
  std::vector<TransferTimes> times(2);
  test::spawn_ranks(2, [&](int rank) {
    std::vector<float> x(10, 1);
    Transfer op = sum_of(x);
    op.times = &times[static_cast<std::size_t>(rank)];
    if (rank == 1) {
      std::this_thread::sleep_for(20ms);
    }
    communicators[static_cast<std::size_t>(rank)]->run(op);
  });
  CHECK(times[0].started - times[0].arrived >= 10'000'000);
  CHECK(times[0].started >= times[1].arrived);
  CHECK(times[1].started >= times[1].arrived);
  CHECK(times[0].ended >= times[0].started);
}

// ---- split -------------------------------------------------------------------------------------

TEST_CASE("a split is a mesh axis: groups by colour, order by key") {
  constexpr int kRanks = 6;  // 2 x 3
  auto communicators = make_local_communicators(kRanks);
  test::spawn_ranks(kRanks, [&](int rank) {
    Communicator& world = *communicators[static_cast<std::size_t>(rank)];
    const auto row = world.split(rank / 3, rank);
    const auto column = world.split(rank % 3, -rank);
    RANK_CHECK(row->size() == 3);
    RANK_CHECK(row->rank() == rank % 3);
    RANK_CHECK(column->size() == 2);
    RANK_CHECK(column->rank() == 1 - rank / 3);  // keys turn the order around
    RANK_CHECK(column->members()[0] == rank % 3 + 3);
    std::vector<float> x{static_cast<float>(rank)};
    row->run(sum_of(x));
    RANK_CHECK(x[0] == (rank < 3 ? 3 : 12));
    column->run(sum_of(x));
    RANK_CHECK(x[0] == 15);
    const auto odd = world.split(rank % 2 == 0 ? -1 : 0, 0);
    RANK_CHECK((odd == nullptr) == (rank % 2 == 0));
    const auto inner = row->split(row->rank() == 0 ? 0 : 1, 0);
    RANK_CHECK(inner->size() == (rank % 3 == 0 ? 1 : 2));
    std::vector<float> y{1};
    inner->run(sum_of(y));
    RANK_CHECK(y[0] == static_cast<float>(inner->size()));
  });
}

// ---- messages ----------------------------------------------------------------------------------

TEST_CASE("messages are matched by tag, not by order") {
  auto communicators = make_local_communicators(2);
  test::spawn_ranks(2, [&](int rank) {
    Communicator& communicator = *communicators[static_cast<std::size_t>(rank)];
    for (std::uint32_t tag = 0; tag < 20; ++tag) {
      const std::uint32_t which = rank == 0 ? tag : 19 - tag;
      std::vector<float> x(3 + which, static_cast<float>(which));
      std::vector<float> y(3 + which, rank == 0 ? static_cast<float>(which) : 0);
      communicator.run(
          message(rank == 0 ? OperationKind::kSend : OperationKind::kRecv, 1 - rank, which, y));
      RANK_CHECK(y == x);
    }
  });
}

TEST_CASE("messages of one tag keep their order, and both directions cross") {
  auto communicators = make_local_communicators(2);
  test::spawn_ranks(2, [&](int rank) {
    Communicator& communicator = *communicators[static_cast<std::size_t>(rank)];
    for (int i = 0; i < 200; ++i) {
      std::vector<double> x(10, i * 2 + rank);
      std::vector<double> y(10);
      communicator.run(message(OperationKind::kSend, 1 - rank, 1, x));
      std::fill(x.begin(), x.end(), -1);  // a send is done when it returns
      communicator.run(message(OperationKind::kRecv, 1 - rank, 1, y));
      RANK_CHECK(y == std::vector<double>(10, i * 2 + 1 - rank));
    }
  });
}

TEST_CASE("random messages between random ranks all arrive") {
  constexpr int kRanks = 4;
  std::mt19937_64 random(test::test_seed());
  struct Post {
    int src, dst;
    std::uint32_t tag;
    std::size_t count;
  };
  std::vector<Post> posts;
  for (std::uint32_t tag = 0; tag < 400; ++tag) {
    posts.push_back({static_cast<int>(random() % kRanks),
                     static_cast<int>(random() % kRanks),
                     tag,
                     random() % 3000});
  }
  auto communicators = make_local_communicators(kRanks);
  test::spawn_ranks(kRanks, [&](int rank) {
    Communicator& communicator = *communicators[static_cast<std::size_t>(rank)];
    for (const Post& post : posts) {
      if (post.src == rank) {
        std::vector<float> x(post.count, static_cast<float>(post.tag));
        communicator.run(message(OperationKind::kSend, post.dst, post.tag, x));
      }
      if (post.dst == rank) {
        std::vector<float> x(post.count);
        communicator.run(message(OperationKind::kRecv, post.src, post.tag, x));
        RANK_CHECK(x == std::vector<float>(post.count, static_cast<float>(post.tag)));
      }
    }
  });
}

// ---- moves and throttle ------------------------------------------------------------------------

std::vector<std::vector<ChunkMove>> moves_of(int ranks, Algorithm algorithm, std::size_t elements) {
  auto communicators = make_local_communicators(ranks, {.record_moves = true});
  std::vector<std::vector<ChunkMove>> moves(static_cast<std::size_t>(ranks));
  test::spawn_ranks(ranks, [&](int rank) {
    auto& communicator = *communicators[static_cast<std::size_t>(rank)];
    std::vector<float> x(elements, 1);
    Transfer op = sum_of(x, algorithm);
    op.label.index = 42;
    communicator.run(op);
    moves[static_cast<std::size_t>(rank)].assign(communicator.moves().begin(),
                                                 communicator.moves().end());
    RANK_CHECK(x == std::vector<float>(elements, static_cast<float>(ranks)));
  });
  return moves;
}

TEST_CASE("a ring all-reduce makes 2 (n - 1) moves of 1/n of the message per rank") {
  constexpr int kRanks = 4;
  for (const auto& mine : moves_of(kRanks, Algorithm::kRing, 400)) {
    REQUIRE(mine.size() == 6);
    for (std::size_t s = 0; s < mine.size(); ++s) {
      CHECK(mine[s].step == static_cast<int>(s));
      CHECK((mine[s].src + 1) % kRanks == mine[s].dst);
      CHECK(mine[s].bytes == 400);
      CHECK(mine[s].label.index == 42);
      CHECK(mine[s].t1 >= mine[s].t0);
      // What a member passes on is what came to its left one step before.
      CHECK((s == 0 || mine[s].chunk == (mine[s - 1].chunk + kRanks - 1) % kRanks));
    }
  }
}

TEST_CASE("direct and tree move what their steps say") {
  const auto count = [](const std::vector<std::vector<ChunkMove>>& moves) {
    std::int64_t bytes = 0;
    std::set<int> steps;
    for (const auto& mine : moves) {
      for (const ChunkMove& move : mine) {
        bytes += move.bytes;
        steps.insert(move.step);
      }
    }
    return std::pair(bytes, steps.size());
  };
  // Direct: every slice of 64 elements goes to its owner from 3 others and back: 2 x 3 x 1,024 B.
  CHECK(count(moves_of(4, Algorithm::kDirect, 256)) ==
        std::pair(std::int64_t{6144}, std::size_t{2}));
  // Tree of 7: 6 edges, up and down, 2 levels each.
  CHECK(count(moves_of(7, Algorithm::kTree, 256)) ==
        std::pair(std::int64_t{12288}, std::size_t{4}));
}

TEST_CASE("under a throttle a collective takes at least what its moves need") {
  constexpr int kRanks = 3;
  constexpr std::int64_t kBytes = 300'000;
  const double bandwidth = 10e6;
  const auto latency = 2ms;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kDirect}) {
    auto communicators =
        make_local_communicators(kRanks, {.link = {bandwidth, latency}, .record_moves = true});
    std::vector<double> seconds(kRanks);
    test::spawn_ranks(kRanks, [&](int rank) {
      auto& communicator = *communicators[static_cast<std::size_t>(rank)];
      std::vector<float> x(kBytes / 4, 1);
      const auto begin = std::chrono::steady_clock::now();
      communicator.run(sum_of(x, algorithm));
      seconds[static_cast<std::size_t>(rank)] =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      RANK_CHECK(x[0] == kRanks);
      for (const ChunkMove& move : communicator.moves()) {
        const double needed = 0.002 + static_cast<double>(move.bytes) / bandwidth;
        RANK_CHECK(static_cast<double>(move.t1 - move.t0) * 1e-9 >= needed * 0.999);
      }
    });
    // Moves of a third: 2 (n - 1) of a ring are one after the other; direct has two steps, in each
    // of which a rank uses its links to all others.
    const int steps = algorithm == Algorithm::kRing ? 4 : 2;
    const double third = 0.998 * 0.01;  // slices end at multiples of 64 elements
    CHECK(*std::min_element(seconds.begin(), seconds.end()) >= steps * (0.002 + third));
  }
}

TEST_CASE("a throttled message arrives no earlier than its link allows") {
  auto communicators = make_local_communicators(2, {.link = {1e6, 1ms}});
  const auto begin = std::chrono::steady_clock::now();  // a rank that starts late waits less
  test::spawn_ranks(2, [&](int rank) {
    std::vector<double> x(1250);  // 10 kB: 10 ms
    for (int i = 0; i < 2; ++i) {
      communicators[static_cast<std::size_t>(rank)]->run(
          message(rank == 0 ? OperationKind::kSend : OperationKind::kRecv, 1 - rank, 0, x));
    }
    RANK_CHECK(std::chrono::steady_clock::now() - begin >= 22ms);
  });
}

}  // namespace
}  // namespace lockstep::exec
