#include "executor/short_slice.h"

#include <cstdint>
#include <cstdio>
#include <thread>

#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/support/catch.h"

namespace lockstep::exec {
namespace {

/// The first 48 bytes of what sched_getattr(2) fills in.
struct Attributes {
  std::uint32_t size = 0;
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};

Attributes attributes_of_this_thread() {
  Attributes attributes{};
  REQUIRE(syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0);
  return attributes;
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
  const Attributes here = attributes_of_this_thread();
  Attributes before{};
  Attributes after{};
  std::thread([&] {
    before = attributes_of_this_thread();
    ask_for_short_slices();
    after = attributes_of_this_thread();
  }).join();
  CHECK(after.policy == before.policy);
  CHECK(after.nice == before.nice);
  CHECK(attributes_of_this_thread().runtime_ns == here.runtime_ns);  // nobody else's
  if (kernel_knows_slices() && before.policy == 0) {
    CHECK(after.runtime_ns == 100'000);
  }
}

}  // namespace
}  // namespace lockstep::exec
