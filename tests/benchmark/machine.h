// The machine that a benchmark runs on: one benchmark at a time, how busy others keep it, the best
// rate of a matrix product, and what a second thread adds (the control: two independent matrix
// products on two threads against one; what no program can beat with two ranks).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace lockstep::bench {

/// Held by one benchmark of this machine; the others wait for it.
class MachineLock {
 public:
  MachineLock();
  MachineLock(const MachineLock&) = delete;
  MachineLock& operator=(const MachineLock&) = delete;
  ~MachineLock();

 private:
  int file_;
};

/// Processor time since construction: what this process took, and what others did.
class LoadMeter {
 public:
  LoadMeter();
  double own_seconds() const;
  /// Share of all cores, 0 to 1.
  double others() const;

 private:
  struct Times {
    double wall = 0;
    double own = 0;
    double busy = 0;
  };
  static Times now();
  Times begin_;
};

/// Waits until others use less than a tenth of the machine, at most so long.
void wait_until_idle(std::chrono::seconds at_most);

struct ProductShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// FLOP/s of y = x w^T in fp32 by this thread: the best of `rounds`.
double product_rate(const ProductShape& shape, int rounds);

/// How much more two threads multiply in a time than one: 2 on two free cores.
double control(const ProductShape& shape, int rounds);

}  // namespace lockstep::bench
