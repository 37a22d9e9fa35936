// Ranks as threads of a test: the same function once per rank.
//
//     spawn_ranks(4, [&](int rank) { communicators[rank]->run({...}); });   // rethrows the first
//     const std::vector<std::string> errors = failures_of(4, ...);           // "" where none
#pragma once

#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::test {

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
