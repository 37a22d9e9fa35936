// LOCKSTEP_CHECK: an invariant of our own code. It stays on in release builds, because a wrong
// number in a report costs more than a comparison. It is not for input: a bad file or flag is a
// BadInputError or UsageError (core/error.h).
//
//     LOCKSTEP_CHECK(begin <= end, fmt::format("view [{}, {}) is inverted", begin, end));
//
// The message (anything that converts to std::string_view) is evaluated only when the condition is
// false. __FILE__ and __LINE__ instead of std::source_location: clang 14 (tidy, fuzzers) cannot
// parse the one of g++ 12.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"

namespace lockstep::detail {

/// Out of line and cold, so that a check costs its caller one compare and one branch.
[[noreturn, gnu::cold, gnu::noinline]] inline void check_failed(const char* file,
                                                                int line,
                                                                const char* condition,
                                                                std::string_view message) {
  const std::string place = std::string(file) + ":" + std::to_string(line);
  throw InternalError(place,
                      "check failed: " + std::string(condition) + ": " + std::string(message));
}

}  // namespace lockstep::detail

#define LOCKSTEP_CHECK(condition, message)                                         \
  do {                                                                             \
    if (!(condition)) [[unlikely]] {                                               \
      ::lockstep::detail::check_failed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                              \
  } while (false)
