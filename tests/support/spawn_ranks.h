// Ranks as threads of a test: the same function once per rank.
//
//     spawn_ranks(4, [&](int rank) { communicators[rank]->run({...}); });   // rethrows the first
//     const std::vector<std::string> errors = failures_of(4, ...);           // "" where none
//
// Catch2's macros are for one thread. Inside a rank use RANK_CHECK(condition): it notes what is
// false and goes on (a rank that stopped would leave the others waiting); spawn_ranks() reports it.
#pragma once

#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

#define RANK_CHECK(...) ::lockstep::test::rank_check((__VA_ARGS__), #__VA_ARGS__, __LINE__)

namespace lockstep::test {

/// What RANK_CHECK found false.
struct RankFaults {
  std::mutex mutex;
  std::vector<std::string> texts;

  static RankFaults& all() {
    static RankFaults faults;
    return faults;
  }
};

inline void rank_check(bool condition, const char* text, int line) {
  if (!condition) {
    RankFaults& faults = RankFaults::all();
    const std::lock_guard lock(faults.mutex);
    faults.texts.push_back("line " + std::to_string(line) + ": " + text);
  }
}

template <typename Body>
std::vector<std::exception_ptr> exceptions_of(int ranks, Body body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&errors, &body, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::string& fault : RankFaults::all().texts) {
    FAIL_CHECK(fault);
  }
  RankFaults::all().texts.clear();
  return errors;
}

template <typename Body>
void spawn_ranks(int ranks, Body body) {
  for (const std::exception_ptr& error : exceptions_of(ranks, body)) {
    if (error != nullptr) {
      std::rethrow_exception(error);
    }
  }
}

template <typename Body>
std::vector<std::string> failures_of(int ranks, Body body) {
  std::vector<std::string> texts;
  for (const std::exception_ptr& error : exceptions_of(ranks, body)) {
    texts.emplace_back();
    if (error != nullptr) {
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& exception) {
        texts.back() = exception.what();
      }
    }
  }
  return texts;
}

}  // namespace lockstep::test
