#include "tests/benchmark/machine.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "kernels/cpu/matmul.h"

namespace lockstep::bench {
namespace {

double clock_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Seconds that all cores have not idled, of all processes (proc(5), /proc/stat).
double busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  double busy = 0;
  for (int column = 0; column < 8; ++column) {
    double ticks = 0;
    file >> ticks;
    const bool idles = column == 3 || column == 4;  // idle, iowait
    busy += idles ? 0 : ticks;
  }
  return busy / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Operands of a product, and the product.
class Product {
 public:
  explicit Product(const ProductShape& shape)
      : shape_(shape),
        x_(static_cast<std::size_t>(shape.m * shape.k), 0.5F),
        weight_(static_cast<std::size_t>(shape.n * shape.k), 0.25F),
        y_(static_cast<std::size_t>(shape.m * shape.n)) {}

  void run() {
    kernels::cpu::matmul<float>(
        x_.data(), weight_.data(), nullptr, y_.data(), {shape_.m, shape_.n, shape_.k});
  }
  double flops() const {
    return 2.0 * static_cast<double>(shape_.m) * static_cast<double>(shape_.n) *
           static_cast<double>(shape_.k);
  }

 private:
  ProductShape shape_;
  std::vector<float> x_;
  std::vector<float> weight_;
  std::vector<float> y_;
};

/// Seconds that `threads` threads take for `rounds` products each.
double seconds_of(int threads, const ProductShape& shape, int rounds) {
  std::atomic<int> ready{0};
  std::vector<double> begins(static_cast<std::size_t>(threads));
  std::vector<double> ends(static_cast<std::size_t>(threads));
  std::vector<std::thread> team;
  for (int i = 0; i < threads; ++i) {
    team.emplace_back([&, i] {
      Product product(shape);
      product.run();
      ++ready;
      while (ready < threads) {
        std::this_thread::yield();
      }
      begins[static_cast<std::size_t>(i)] = clock_seconds(CLOCK_MONOTONIC);
      for (int round = 0; round < rounds; ++round) {
        product.run();
      }
      ends[static_cast<std::size_t>(i)] = clock_seconds(CLOCK_MONOTONIC);
    });
  }
  for (std::thread& thread : team) {
    thread.join();
  }
  return *std::max_element(ends.begin(), ends.end()) -
         *std::min_element(begins.begin(), begins.end());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

MachineLock::MachineLock()
    : file_(open((std::filesystem::temp_directory_path() / "lockstep-benchmark.lock").c_str(),
                 O_CREAT | O_RDWR | O_CLOEXEC,
                 0666)) {
  if (file_ < 0 || flock(file_, LOCK_EX) != 0) {
    throw std::runtime_error("[bench] lockstep-benchmark.lock cannot be locked");
  }
}

MachineLock::~MachineLock() {
  close(file_);
}

LoadMeter::LoadMeter() : begin_(now()) {}

LoadMeter::Times LoadMeter::now() {
  return {clock_seconds(CLOCK_MONOTONIC), clock_seconds(CLOCK_PROCESS_CPUTIME_ID), busy_seconds()};
}

double LoadMeter::own_seconds() const {
  return now().own - begin_.own;
}

double LoadMeter::others() const {
  const Times end = now();
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  const double others = (end.busy - begin_.busy) - (end.own - begin_.own);
  return std::clamp(others / (cores * (end.wall - begin_.wall)), 0.0, 1.0);
}

void wait_until_idle(std::chrono::seconds at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (std::chrono::steady_clock::now() < end) {
    const LoadMeter meter;
    std::this_thread::sleep_for(std::chrono::seconds(1));
    if (meter.others() < 0.1) {
      return;
    }
  }
}

double product_rate(const ProductShape& shape, int rounds) {
  Product product(shape);
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const double begin = clock_seconds(CLOCK_MONOTONIC);
    product.run();
    best = std::max(best, product.flops() / (clock_seconds(CLOCK_MONOTONIC) - begin));
  }
  return best;
}

double control(const ProductShape& shape, int rounds) {
  constexpr int kPairs = 5;
  std::vector<double> ratios;
  for (int pair = 0; pair < kPairs; ++pair) {
    const double one = seconds_of(1, shape, rounds);
    ratios.push_back(2 * one / seconds_of(2, shape, rounds));
  }
  return median(ratios);
}

}  // namespace lockstep::bench
