// Parallel: independent pieces of work on several threads. Every piece writes to a place of its
// own, so results never depend on the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace lockstep::sim {

/// work(thread, i) for all i below `count`, on `threads` threads, this one included. The failure of
/// the lowest thread is thrown on when all have ended.
template <typename Work>
void for_all(std::size_t count, int threads, Work&& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(threads));
  const auto run = [&](int thread) {
    try {
      for (std::size_t i = next++; i < count; i = next++) {
        work(thread, i);
      }
    } catch (...) {
      failures[static_cast<std::size_t>(thread)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> pool;
    for (int thread = 1; thread < threads; ++thread) {
      pool.emplace_back(run, thread);
    }
    run(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) {
      std::rethrow_exception(failure);
    }
  }
}

/// `wanted`, or one per core when it is 0; never more than there are pieces.
inline int thread_count(int wanted, std::size_t pieces) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t threads = wanted > 0 ? static_cast<std::size_t>(wanted) : cores;
  return static_cast<int>(std::max<std::size_t>(1, std::min(threads, pieces)));
}

}  // namespace lockstep::sim
