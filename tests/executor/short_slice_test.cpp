#include "executor/short_slice.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <thread>

#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/support/catch.h"

namespace lockstep::exec {
namespace {

/// What sched_getattr(2) tells of the calling thread, as words: size and policy, flags, nice and
/// priority, slice in nanoseconds, two of other policies.
using Attributes = std::array<std::uint64_t, 6>;
constexpr std::size_t kSlice = 3;

Attributes attributes_of_this_thread() {
  Attributes words{};
  REQUIRE(syscall(SYS_sched_getattr, 0, words.data(), sizeof(words), 0) == 0);
  return words;
}

bool kernel_knows_slices() {
  utsname name{};
  int major = 0;
  int minor = 0;
  REQUIRE(uname(&name) == 0);
  REQUIRE(std::sscanf(name.release, "%d.%d", &major, &minor) == 2);
  return major > 6 || (major == 6 && minor >= 12);
}

TEST_CASE("a thread that asked for short slices has them, at the priority it had") {
  Attributes words{};
  if (syscall(SYS_sched_getattr, 0, words.data(), sizeof(words), 0) != 0) {
    WARN("skipped: this kernel does not tell a thread's slice");
    return;
  }
  const Attributes here = attributes_of_this_thread();
  Attributes before{};
  Attributes after{};
  std::thread([&] {
    before = attributes_of_this_thread();
    ask_for_short_slices();
    after = attributes_of_this_thread();
  }).join();
  CHECK(attributes_of_this_thread() == here);  // nobody else's
  if (kernel_knows_slices() && before[0] >> 32 == 0) {
    CHECK(after[kSlice] == 100'000);
  }
  after[kSlice] = before[kSlice];
  CHECK(after == before);
}

}  // namespace
}  // namespace lockstep::exec
