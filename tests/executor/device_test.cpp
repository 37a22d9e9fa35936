// Memory and streams of a CpuDevice.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "core/error.h"
#include "executor/cpu_device.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"

namespace lockstep::exec {
namespace {

constexpr StreamId kCompute = stream_id(Stream::kCompute);
constexpr StreamId kData = stream_id(Stream::kData);
constexpr StreamId kTensor = stream_id(Stream::kTensor);

void sleep_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST_CASE("memory is counted in exact bytes, by category and storage") {
  CpuDevice device;
  void* const a = device.allocate(Category::kParameter, Storage::kDevice, 1000);
  void* const b = device.allocate(Category::kActivation, Storage::kDevice, 3);
  void* const c = device.allocate(Category::kActivation, Storage::kPinned, 70);
  CHECK(device.memory().current(Category::kParameter) == 1000);
  CHECK(device.memory().current(Category::kActivation) == 73);
  CHECK(device.memory().current(Storage::kDevice) == 1003);
  CHECK(device.memory().current(Storage::kPinned) == 70);
  device.free(c, {});
  device.free(a, {});
  CHECK(device.memory().current() == 3);
  CHECK(device.memory().peak() == 1073);
  CHECK(device.memory().peak(Category::kActivation) == 73);
  device.memory().reset_peaks();
  CHECK(device.memory().peak() == 3);
  device.free(b, {});
  const std::vector<MemoryEvent> expected{{Category::kParameter, Storage::kDevice, false, 1000},
                                          {Category::kActivation, Storage::kDevice, false, 3},
                                          {Category::kActivation, Storage::kPinned, false, 70},
                                          {Category::kActivation, Storage::kPinned, true, 70},
                                          {Category::kParameter, Storage::kDevice, true, 1000},
                                          {Category::kActivation, Storage::kDevice, true, 3}};
  const auto events = device.memory().events();
  CHECK(std::vector<MemoryEvent>(events.begin(), events.end()) == expected);
}

TEST_CASE("the account of random allocations equals a count kept beside it") {
  std::mt19937_64 random(test::test_seed());
  CpuDevice device;
  struct Live {
    void* memory;
    Category category;
    std::int64_t bytes;
    unsigned char mark;
  };
  std::vector<Live> live;
  std::vector<std::int64_t> now(kCategoryCount), peak(kCategoryCount);
  for (int i = 0; i < test::scaled(3000); ++i) {
    if (live.empty() || random() % 2 == 0) {
      const auto category = static_cast<Category>(random() % kCategoryCount);
      const auto bytes = static_cast<std::int64_t>(random() % 5000);
      void* const memory = device.allocate(category, Storage::kDevice, bytes);
      REQUIRE(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
      const auto mark = static_cast<unsigned char>(random());
      std::fill_n(static_cast<unsigned char*>(memory), bytes, mark);
      live.push_back({memory, category, bytes, mark});
      auto& count = now[static_cast<std::size_t>(category)] += bytes;
      peak[static_cast<std::size_t>(category)] =
          std::max(peak[static_cast<std::size_t>(category)], count);
    } else {
      const std::size_t which = random() % live.size();
      const Live gone = live[which];
      const auto* const bytes = static_cast<const unsigned char*>(gone.memory);
      REQUIRE(std::all_of(
          bytes, bytes + gone.bytes, [&](unsigned char each) { return each == gone.mark; }));
      device.free(gone.memory, {});
      now[static_cast<std::size_t>(gone.category)] -= gone.bytes;
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  for (int i = 0; i < kCategoryCount; ++i) {
    CHECK(device.memory().current(static_cast<Category>(i)) == now[static_cast<std::size_t>(i)]);
    CHECK(device.memory().peak(static_cast<Category>(i)) == peak[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("a second step gets the memory of the first") {
  CpuDevice device;
  const auto step = [&] {
    std::set<void*> used;
    std::vector<void*> held;
    for (const std::int64_t bytes : {100, 5000, 100, 3 << 20, 64}) {
      held.push_back(device.allocate(Category::kActivation, Storage::kDevice, bytes));
      used.insert(held.back());
    }
    for (void* const each : held) {
      device.free(each, {});
    }
    return used;
  };
  const std::set<void*> first = step();
  CHECK(step() == first);
}

TEST_CASE("memory is not lent again while a stream may use it") {
  CpuDevice device;
  std::atomic<bool> go{false};
  std::atomic<bool>* const flag = &go;
  device.enqueue(kData, make_task([flag] { flag->wait(false); }));
  const Event use = device.record(kData);
  void* const first = device.allocate(Category::kTemporary, Storage::kDevice, 4096);
  device.free(first, {&use, 1});
  CHECK(device.memory().current() == 0);
  void* const second = device.allocate(Category::kTemporary, Storage::kDevice, 4096);
  CHECK(second != first);
  go = true;
  go.notify_all();
  device.synchronize();
  CHECK(device.allocate(Category::kTemporary, Storage::kDevice, 4096) == first);
}

TEST_CASE("the limit is exact and says what is lent") {
  CpuDevice device({.limit_bytes = 1000});
  device.allocate(Category::kParameter, Storage::kDevice, 600);
  void* const rest = device.allocate(Category::kGradient, Storage::kDevice, 400);
  try {
    device.allocate(Category::kActivation, Storage::kDevice, 1);
    FAIL("1001 bytes of 1000");
  } catch (const OutOfMemoryError& error) {
    CHECK(error.exit_code() == 4);
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("1 bytes of activation"));
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("limit 1000 bytes"));
  }
  device.free(rest, {});
  CHECK_NOTHROW(device.allocate(Category::kActivation, Storage::kDevice, 400));
}

TEST_CASE("poisoned memory is NaN in every type, also when it is lent again") {
  CpuDevice device({.poison = true});
  for (int i = 0; i < 2; ++i) {
    auto* const values =
        static_cast<float*>(device.allocate(Category::kActivation, Storage::kDevice, 400));
    CHECK(std::all_of(values, values + 100, [](float value) { return std::isnan(value); }));
    std::fill_n(values, 100, 1.0F);
    device.free(values, {});
  }
}

TEST_CASE("tasks of a stream run in order, each after what its stream waits for") {
  CpuDevice device;
  std::vector<int> order;  // written by two streams that wait for each other
  std::vector<int>* const log = &order;
  std::vector<int> expected;
  for (int i = 0; i < test::scaled(2000); i += 2) {
    device.enqueue(kData, make_task([log, i] { log->push_back(i); }));
    device.wait(kTensor, device.record(kData));
    device.enqueue(kTensor, make_task([log, i] { log->push_back(i + 1); }));
    device.wait(kData, device.record(kTensor));
    expected.push_back(i);
    expected.push_back(i + 1);
  }
  device.synchronize();
  CHECK(order == expected);
}

TEST_CASE("streams run beside each other and beside the host") {
  CpuDevice device;
  std::atomic<int> met{0};
  std::atomic<int>* const count = &met;
  const auto meet = make_task([count] {
    count->fetch_add(1);
    count->notify_all();
    for (int seen = count->load(); seen < 3; seen = count->load()) {
      count->wait(seen);
    }
  });
  device.enqueue(kData, meet);
  device.enqueue(kTensor, meet);
  device.enqueue(kCompute, meet);  // on this thread
  device.synchronize();
  CHECK(met == 3);
}

TEST_CASE("the compute stream waits for a communication stream") {
  CpuDevice device;
  int value = 0;
  int* const cell = &value;
  device.enqueue(kData, make_task([cell] {
                   sleep_ms(5);
                   *cell = 7;
                 }));
  const Event event = device.record(kData);
  CHECK_FALSE(device.reached(event));
  device.wait(kCompute, event);
  CHECK(value == 7);
  CHECK(device.reached(event));
}

TEST_CASE("copies are in order with the tasks of their stream") {
  CpuDevice device;
  int from = 0;
  int to = 0;
  int* const cell = &from;
  device.enqueue(kData, make_task([cell] {
                   sleep_ms(2);
                   *cell = 3;
                 }));
  device.copy(kData, &to, &from, sizeof(int));
  device.synchronize(device.record(kData));
  CHECK(to == 3);
}

TEST_CASE("what a task throws reaches the next synchronize, and later tasks are passed over") {
  CpuDevice device;
  std::atomic<int> told{0};
  device.on_failure([&](const char* what) {
    told += std::string(what).find("no luck") != std::string::npos ? 1 : 100;
  });
  std::atomic<int> ran{0};
  std::atomic<int>* const count = &ran;
  device.enqueue(kData, make_task([] { throw BadInputError("test", "no luck"); }));
  device.enqueue(kData, make_task([count] { ++*count; }));
  device.wait(kTensor, device.record(kData));
  device.enqueue(kTensor, make_task([count] { ++*count; }));
  CHECK_THROWS_AS(device.synchronize(), BadInputError);
  CHECK_THROWS_AS(device.synchronize(device.record(kTensor)), BadInputError);
  CHECK_THROWS_AS(device.enqueue(kCompute, make_task([count] { ++*count; })), BadInputError);
  CHECK(ran == 0);
  CHECK(told == 1);
}

TEST_CASE("a device that goes with work in its streams ends after the running task") {
  std::atomic<int> ran{0};
  std::atomic<int>* const count = &ran;
  {
    CpuDevice device;
    for (int i = 0; i < 100; ++i) {
      device.enqueue(kData, make_task([count] {
                       sleep_ms(5);
                       ++*count;
                     }));
      device.wait(kTensor, device.record(kData));
      device.enqueue(kTensor, make_task([count] { ++*count; }));
    }
  }
  CHECK(ran < 100);
}

TEST_CASE("a stream takes more tasks than its ring has places") {
  CpuDevice device;
  std::int64_t sum = 0;
  std::int64_t* const total = &sum;
  for (std::int64_t i = 0; i < 5000; ++i) {
    device.enqueue(kData, make_task([total, i] { *total += i; }));
  }
  device.synchronize();
  CHECK(sum == 5000 * 4999 / 2);
}

}  // namespace
}  // namespace lockstep::exec
