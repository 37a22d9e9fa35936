// All-reduce of two ranks in one process, beside what the memory allows: two threads that each add
// half of two arrays into a third, with the same bytes read and written per byte of the message.
// Rounds of both are interleaved, so that what else the machine does hits both.
//
//     local_bench [SECONDS PER SIZE]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "executor/cpu_device.h"
#include "executor/local_communicator.h"

namespace lockstep::exec {
namespace {

constexpr int kRanks = 2;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The loop that the all-reduce is measured against.
[[gnu::noinline]] void add(float* to, const float* a, const float* b, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = a[i] + b[i];
  }
}

struct Arrays {
  float* mine = nullptr;  // the message of this rank
  float* a = nullptr;     // of the control, common to both threads
  float* b = nullptr;
  float* c = nullptr;
};

struct Figures {
  std::vector<double> all_reduce;  // seconds per call, a round each
  std::vector<double> control;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

float* array(CpuDevice& device, std::int64_t count) {
  auto* const values =
      static_cast<float*>(device.allocate(Category::kTemporary, Storage::kDevice, count * 4));
  std::fill_n(values, count, 0.5F);
  return values;
}

/// One rank: rounds of `repeats` all-reduces and `repeats` additions of its half.
void measure(Communicator& communicator,
             const Arrays& arrays,
             std::int64_t count,
             double budget,
             Figures& figures) {
  const int rank = communicator.rank();
  const std::int64_t half = count / 2;
  const std::int64_t begin = rank == 0 ? 0 : half;
  const std::int64_t length = rank == 0 ? half : count - half;
  const int repeats = static_cast<int>(std::clamp<std::int64_t>(20'000'000 / count, 1, 5000));
  const Transfer barrier{.collective = Collective::kBarrier};
  const Clock::time_point start = Clock::now();
  std::int32_t go = 1;
  while (go != 0) {
    communicator.run(barrier);
    Clock::time_point now = Clock::now();
    for (int i = 0; i < repeats; ++i) {
      communicator.run(
          {.reduction = Reduction::kSum, .elements = count, .in = arrays.mine, .out = arrays.mine});
      communicator.forget_issued();
    }
    figures.all_reduce.push_back(seconds_since(now) / repeats);
    communicator.run(barrier);
    now = Clock::now();
    for (int i = 0; i < repeats; ++i) {
      add(arrays.c + begin, arrays.a + begin, arrays.b + begin, length);
    }
    figures.control.push_back(seconds_since(now) / repeats);
    std::fill_n(arrays.mine, count, 0.5F);
    go = seconds_since(start) < budget ? 1 : 0;
    communicator.run({.collective = Collective::kBroadcast,
                      .dtype = DType::kInt32,
                      .peer = 0,
                      .elements = 1,
                      .in = &go,
                      .out = &go});
  }
}

void report(std::int64_t bytes, double budget) {
  const std::int64_t count = bytes / 4;
  auto communicators = make_local_communicators(kRanks);
  CpuDevice device;
  Arrays common{nullptr, array(device, count), array(device, count), array(device, count)};
  std::vector<Figures> figures(kRanks);
  std::vector<float*> messages{array(device, count), array(device, count)};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Arrays arrays = common;
      arrays.mine = messages[static_cast<std::size_t>(rank)];
      measure(*communicators[static_cast<std::size_t>(rank)],
              arrays,
              count,
              budget,
              figures[static_cast<std::size_t>(rank)]);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  // A round is over when the slower of the two is.
  Figures slower;
  for (std::size_t i = 0; i < figures[0].all_reduce.size(); ++i) {
    slower.all_reduce.push_back(std::max(figures[0].all_reduce[i], figures[1].all_reduce[i]));
    slower.control.push_back(std::max(figures[0].control[i], figures[1].control[i]));
  }
  const double own = median(slower.all_reduce);
  const double control = median(slower.control);
  fmt::print(
      "{:>11} B  all_reduce {:>10.2f} us (best {:>10.2f})  add loop {:>10.2f} us  {:>6.1f} %\n",
      bytes,
      own * 1e6,
      *std::min_element(slower.all_reduce.begin(), slower.all_reduce.end()) * 1e6,
      control * 1e6,
      control / own * 100);
}

}  // namespace
}  // namespace lockstep::exec

int main(int count, char** arguments) {
  const double budget = count > 1 ? std::strtod(arguments[1], nullptr) : 5;
  fmt::print("2 ranks, medians of interleaved rounds; % = add loop / all_reduce\n");
  for (const std::int64_t bytes : {4L, 1L << 10, 1L << 20, 100'000'000L}) {
    lockstep::exec::report(bytes, budget);
  }
  return 0;
}
