// A step that has run before does not touch the heap: every operator new of this program is
// counted, and while a steady step runs every byte that malloc and its kin give and take.
#include <atomic>
#include <cstdlib>
#include <new>
#include <tuple>
#include <vector>

#include <malloc.h>

#include "executor/cpu_device.h"
#include "executor/local_communicator.h"
#include "tests/support/awkward.h"
#include "tests/support/catch.h"
#include "tests/support/real_run.h"
#include "tests/support/spawn_ranks.h"

// Sanitizers have an allocator of their own. g++ says by macros that they are on, clang by a
// question.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKSTEP_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LOCKSTEP_SANITIZED 1
#endif
#endif

namespace {

std::atomic<std::int64_t> allocations{
    0};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

#ifndef LOCKSTEP_SANITIZED
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
#endif

// ---- malloc -------------------------------------------------------------------------------------

namespace {

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> counting{false};
std::atomic<std::int64_t> heap_now{0};   ///< bytes, since counting began
std::atomic<std::int64_t> heap_most{0};  ///< of heap_now
/// Whether blocks of posix_memalign count: a CpuDevice's are, and a oneDNN primitive's scratch.
std::atomic<bool> aligned_counts{false};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

#if defined(__GLIBC__) && !defined(LOCKSTEP_SANITIZED)
#define LOCKSTEP_COUNTS_HEAP 1

namespace {

void* taken(void* memory) {
  if (memory != nullptr && counting.load(std::memory_order_relaxed)) {
    const auto bytes = static_cast<std::int64_t>(malloc_usable_size(memory));
    const std::int64_t now = heap_now.fetch_add(bytes) + bytes;
    for (std::int64_t most = heap_most.load(); now > most;) {
      if (heap_most.compare_exchange_weak(most, now)) {
        break;
      }
    }
  }
  return memory;
}

void given(void* memory) {
  if (memory != nullptr && counting.load(std::memory_order_relaxed)) {
    heap_now.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(memory)));
  }
}

}  // namespace

// The library's own names of its functions (glibc manual, "Replacing malloc").
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming,readability-inconsistent-declaration-parameter-name)
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);

void* malloc(std::size_t size) {
  return taken(__libc_malloc(size));
}
void* calloc(std::size_t count, std::size_t size) {
  return taken(__libc_calloc(count, size));
}
void* realloc(void* memory, std::size_t size) {
  given(memory);
  return taken(__libc_realloc(memory, size));
}
void* memalign(std::size_t alignment, std::size_t size) {
  return taken(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return taken(__libc_memalign(alignment, size));
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = __libc_memalign(alignment, size);
  if (aligned_counts.load(std::memory_order_relaxed)) {
    taken(*memory);
  }
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  given(memory);
  __libc_free(memory);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming,readability-inconsistent-declaration-parameter-name)
#endif

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

#ifndef LOCKSTEP_SANITIZED
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
#endif

#ifdef LOCKSTEP_COUNTS_HEAP

/// Most bytes that the heap grew by while the last of several steps ran. Blocks that a device got
/// anew because a stream was late are its own memory and do not count, unless `all`.
std::int64_t growth_in_steady_step(const Scenario& scenario, bool all) {
  constexpr int kSteps = 5;
  int steps = 0;
  test::RunOptions options;
  options.after_section = [&](Job& job, const Section& section) {
    counting = false;
    for (int rank = 0; rank < job.ranks(); ++rank) {
      job.device(rank).memory().forget_events();
      for (const auto& communicator : job.communicators(rank)) {
        if (communicator != nullptr) {
          communicator->forget_issued();
        }
      }
    }
    if (section.kind == SectionKind::kStep && ++steps == kSteps - 1) {
      aligned_counts = all;
      heap_now = heap_most = 0;
      counting = true;
    }
  };
  test::run_for_real(scenario, kSteps, options);
  return heap_most.load();
}

/// Activations of megabytes, so that a copy of any would show.
Scenario wide(Scenario scenario) {
  scenario.training.precision = Precision::kFp32;
  scenario.training.micro_batch = 8;
  scenario.model.max_position = 60;
  scenario.training.seq_len = 0;
  return resolved(scenario);
}

TEST_CASE("in a steady step the heap outside the device grows by less than 1 MiB a rank") {
  constexpr std::int64_t kLimit = 1 << 20;
  const test::NamedScenario training = test::awkward_trainings()[0];
  const Scenario one = wide(training.scenario);
  CHECK(growth_in_steady_step(one, true) < kLimit);
  for (const auto& [kind, pipeline, data, tensor] : {std::tuple{DataKind::kDdp, 1, 3, 1},
                                                     std::tuple{DataKind::kFsdp, 2, 2, 2},
                                                     std::tuple{DataKind::kZero3, 1, 2, 2}}) {
    Scenario scenario = training.scenario;
    scenario.strategy.data.kind = kind;
    scenario.strategy.data.degree = data;
    scenario.strategy.pipeline.degree = pipeline;
    scenario.strategy.tensor.degree = tensor;
    scenario.strategy.tensor.sequence_parallel = tensor > 1;
    scenario = wide(scenario);
    INFO(test::text_of(scenario));
    CHECK(growth_in_steady_step(scenario, false) < kLimit * scenario.strategy.world_size());
  }
}

TEST_CASE("bytes of the heap are counted") {
  heap_now = heap_most = 0;
  counting = true;
  {
    const std::vector<char> block(std::size_t{3} << 20);
    CHECK(block.back() == 0);
  }
  counting = false;
  CHECK(heap_most.load() >= 3 << 20);
  CHECK(std::abs(heap_now.load()) < 1 << 20);
}

#endif

}  // namespace
}  // namespace lockstep::exec
