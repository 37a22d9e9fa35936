#include "cli/interrupt.h"

#include <csignal>
#include <ctime>

#include <unistd.h>

#include "core/error.h"

namespace lockstep::cli {
namespace {

// A signal handler's only memory: second of the clock when it was first asked, 0 = it was not.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
volatile std::sig_atomic_t first_request = 0;

/// Who asks again a second later means it; two signals at once are one (`timeout` signals both the
/// process and its group).
void request(int) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto second = static_cast<std::sig_atomic_t>(now.tv_sec % 1'000'000 + 1);
  if (first_request == 0) {
    first_request = second;
  } else if (second > first_request + 1) {
    _exit(static_cast<int>(ErrorKind::kInterrupted));
  }
}

}  // namespace

Interrupt::Interrupt()
    : old_int_(std::signal(SIGINT, request)), old_term_(std::signal(SIGTERM, request)) {
  first_request = 0;
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, old_int_);
  std::signal(SIGTERM, old_term_);
}

bool Interrupt::requested() const {
  return first_request != 0;
}

}  // namespace lockstep::cli
