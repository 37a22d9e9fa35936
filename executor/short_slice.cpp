#include "executor/short_slice.h"

#include <cstdint>

#include <sys/syscall.h>
#include <unistd.h>

namespace lockstep::exec {
namespace {

/// struct sched_attr of linux/sched/types.h, whose header does not go together with <sched.h>.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48, "SCHED_ATTR_SIZE_VER0");

constexpr std::uint64_t kSliceNs = 100'000;  // the kernel's least

}  // namespace

void ask_for_short_slices() noexcept {
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0 ||
      attributes.policy != 0) {  // not SCHED_OTHER: somebody has chosen for this thread
    return;
  }
  attributes.size = sizeof(attributes);
  attributes.runtime_ns = kSliceNs;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace lockstep::exec
