// The executor's streams and collectives under ThreadSanitizer.
#include <vector>

#include "executor/cpu_device.h"
#include "executor/local_communicator.h"
#include "tests/support/catch.h"
#include "tests/support/spawn_ranks.h"

namespace lockstep::exec {
namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kCount = 5000;
constexpr StreamId kCompute = stream_id(Stream::kCompute);
constexpr StreamId kData = stream_id(Stream::kData);
constexpr StreamId kTensor = stream_id(Stream::kTensor);

TEST_CASE("ranks that reduce, gather and send race with nobody") {
  auto communicators = make_local_communicators(kRanks);
  test::spawn_ranks(kRanks, [&](int rank) {
    Communicator& world = *communicators[static_cast<std::size_t>(rank)];
    const auto pair = world.split(rank / 2, rank);
    CpuDevice device;
    for (int i = 0; i < 20; ++i) {
      auto* const x = static_cast<float*>(
          device.allocate(Category::kGradient, Storage::kDevice, kCount * 4 * kRanks));
      device.enqueue(kCompute, make_task([x] { std::fill_n(x, kCount * kRanks, 1.0F); }));
      const auto algorithm = static_cast<Algorithm>(i % 4);
      for (const std::int64_t count : {std::int64_t{8}, kCount}) {
        world.issue(device,
                    kData,
                    {.reduction = Reduction::kSum,
                     .algorithm = algorithm,
                     .elements = count,
                     .in = x,
                     .out = x});
      }
      world.issue(device,
                  kTensor,
                  {.collective = Collective::kReduceScatter,
                   .reduction = Reduction::kSum,
                   .algorithm = algorithm,
                   .elements = kCount,
                   .in = x,
                   .out = x + rank * kCount});
      world.issue(device,
                  kTensor,
                  {.collective = Collective::kAllGather,
                   .algorithm = algorithm,
                   .elements = kCount,
                   .in = x + rank * kCount,
                   .out = x});
      const auto other = static_cast<std::int16_t>(1 - pair->rank());
      device.wait(kData, device.record(kTensor));
      pair->issue(device,
                  kData,
                  {.kind = OperationKind::kSend, .peer = other, .elements = kCount, .in = x});
      pair->issue(device,
                  kData,
                  {.kind = OperationKind::kRecv, .peer = other, .elements = kCount, .out = x});
      const Event use = device.record(kData);
      device.wait(kCompute, use);
      RANK_CHECK(x[kCount - 1] == 16);
      device.free(x, {&use, 1});
    }
    device.synchronize();
  });
}

TEST_CASE("a job that is aborted in the middle ends without a race") {
  for (int repeat = 0; repeat < 20; ++repeat) {
    auto communicators = make_local_communicators(kRanks);
    std::vector<std::vector<float>> data(kRanks, std::vector<float>(3000));
    const auto errors = test::failures_of(kRanks, [&](int rank) {
      Communicator& world = *communicators[static_cast<std::size_t>(rank)];
      float* const x = data[static_cast<std::size_t>(rank)].data();
      for (int i = 0; i < 10 + repeat; ++i) {
        if (rank == 1 && i == repeat) {
          world.abort("enough");
          return;
        }
        world.run({.reduction = Reduction::kSum,
                   .algorithm = static_cast<Algorithm>(i % 4),
                   .elements = 3000,
                   .in = x,
                   .out = x});
      }
    });
    CHECK(errors[1].empty());
    CHECK_FALSE(errors[0].empty());
    CHECK_FALSE(errors[3].empty());
  }
}

}  // namespace
}  // namespace lockstep::exec
