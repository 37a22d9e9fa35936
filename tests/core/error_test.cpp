#include "core/error.h"

#include "tests/support/catch.h"

using namespace lockstep;  // NOLINT(google-build-using-namespace): a test file

TEST_CASE("every kind of error ends the program with the exit code of the command contract") {
  CHECK(CheckFailedError("memory", "does not fit").exit_code() == 1);
  CHECK(UsageError("cli", "unknown flag").exit_code() == 2);
  CHECK(BadInputError("scenario", "not JSON").exit_code() == 3);
  CHECK(OutOfMemoryError("device", "3 GiB asked, 2 GiB left").exit_code() == 4);
  CHECK(RankFailedError("launcher", "rank 3 died").exit_code() == 5);
  CHECK(TimeoutError("communicator", "rank 1 is missing").exit_code() == 6);
  CHECK(NotSupportedError("nccl", "not built in").exit_code() == 7);
  CHECK(InterruptedError("train", "Ctrl-C").exit_code() == 130);
}

TEST_CASE("an internal error has an exit code that no contract uses") {
  CHECK(InternalError("plan", "bug").exit_code() == 70);
}

TEST_CASE("an error says its component, then what failed") {
  CHECK(std::string(BadInputError("scenario", "heads is 0").what()) == "[scenario] heads is 0");
}

TEST_CASE("an error can be caught as its own type or as any error of Lockstep") {
  CHECK_THROWS_AS([] { throw UsageError("cli", "x"); }(), UsageError);
  CHECK_THROWS_AS([] { throw UsageError("cli", "x"); }(), Error);
  CHECK(UsageError("cli", "x").kind() == ErrorKind::kUsage);
}
