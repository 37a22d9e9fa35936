// A step that has run before does not touch the heap: every operator new of this program is
// counted.
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "executor/cpu_device.h"
#include "executor/local_communicator.h"
#include "tests/support/catch.h"
#include "tests/support/spawn_ranks.h"

namespace {

std::atomic<std::int64_t> allocations{
    0};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace lockstep::exec {
namespace {

constexpr StreamId kCompute = stream_id(Stream::kCompute);
constexpr StreamId kData = stream_id(Stream::kData);
constexpr StreamId kPipeline = stream_id(Stream::kPipeline);

/// What a rank does in a step: memory, compute, every kind of transfer, messages, events.
void step(CpuDevice& device, Communicator& data, Communicator& ring) {
  constexpr std::int64_t kCount = 20000;
  auto* const x =
      static_cast<float*>(device.allocate(Category::kGradient, Storage::kDevice, kCount * 4));
  auto* const y =
      static_cast<float*>(device.allocate(Category::kTemporary, Storage::kDevice, kCount * 4));
  device.enqueue(kCompute, make_task([x] { std::fill_n(x, kCount, 1.0F); }));
  device.wait(kData, device.record(kCompute));
  for (const Algorithm algorithm : {Algorithm::kAuto, Algorithm::kRing, Algorithm::kTree}) {
    for (const std::int64_t count : {std::int64_t{16}, kCount}) {
      data.issue(device,
                 kData,
                 {.reduction = Reduction::kSum,
                  .algorithm = algorithm,
                  .elements = count,
                  .in = x,
                  .out = x});
    }
  }
  const auto right = static_cast<std::int16_t>((ring.rank() + 1) % ring.size());
  const auto left = static_cast<std::int16_t>((ring.rank() + ring.size() - 1) % ring.size());
  ring.issue(device,
             kPipeline,
             {.kind = OperationKind::kSend, .peer = right, .elements = kCount, .in = x});
  ring.issue(device,
             kPipeline,
             {.kind = OperationKind::kRecv, .peer = left, .elements = kCount, .out = y});
  const Event uses[] = {device.record(kData), device.record(kPipeline)};
  device.free(x, uses);
  device.free(y, uses);
  device.synchronize();
  device.memory().forget_events();
  data.forget_issued();
  ring.forget_issued();
}

TEST_CASE("after the first steps a step does not allocate outside the device's own blocks") {
  constexpr int kRanks = 3;
  auto communicators = make_local_communicators(kRanks);
  std::atomic<std::int64_t> during{0};
  test::spawn_ranks(kRanks, [&](int rank) {
    Communicator& data = *communicators[static_cast<std::size_t>(rank)];
    const auto ring = data.split(0, rank);
    CpuDevice device;
    std::int64_t before = 0;
    for (int i = 0; i < 60; ++i) {
      if (i == 30) {
        data.run({.collective = Collective::kBarrier});
        before = allocations.load();
        data.run({.collective = Collective::kBarrier});
      }
      step(device, data, *ring);
    }
    data.run({.collective = Collective::kBarrier});
    during = allocations.load() - before;
    data.run({.collective = Collective::kBarrier});
  });
  // Whether a message finds its receiver waiting is a matter of time: a mailbox may still have to
  // make a buffer, once.
  CHECK(during.load() <= 2 * kRanks);
}

}  // namespace
}  // namespace lockstep::exec
