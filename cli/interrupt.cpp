#include "cli/interrupt.h"

#include <csignal>

#include <unistd.h>

#include "core/error.h"

namespace lockstep::cli {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler's only
// memory
volatile std::sig_atomic_t requests = 0;

void request(int) {
  requests = requests + 1;
  if (requests > 1) {
    _exit(static_cast<int>(ErrorKind::kInterrupted));
  }
}

}  // namespace

Interrupt::Interrupt()
    : old_int_(std::signal(SIGINT, request)), old_term_(std::signal(SIGTERM, request)) {
  requests = 0;
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, old_int_);
  std::signal(SIGTERM, old_term_);
}

bool Interrupt::requested() const {
  return requests > 0;
}

}  // namespace lockstep::cli
