#include "core/check.h"

#include <string>

#include "tests/support/catch.h"

namespace {

std::string message_of_failing_check() {
  try {
    LOCKSTEP_CHECK(1 + 1 == 3, std::string("sum is ") + std::to_string(1 + 1));
  } catch (const lockstep::InternalError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a failed check says its file and line, the condition and the values") {
  const std::string message = message_of_failing_check();
  CHECK_THAT(message, Catch::Matchers::StartsWith("["));
  CHECK(message.find("check_test.cpp:11] check failed: 1 + 1 == 3: sum is 2") != std::string::npos);
}

TEST_CASE("a check that holds evaluates neither its message nor its condition twice") {
  int conditions = 0;
  int messages = 0;
  const auto message = [&messages] {
    ++messages;
    return "unused";
  };
  LOCKSTEP_CHECK(++conditions == 1, message());
  CHECK(conditions == 1);
  CHECK(messages == 0);
}
