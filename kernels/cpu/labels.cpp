#include "kernels/cpu/loss.h"

namespace lockstep::kernels::cpu {

std::int64_t count_labels(const std::int64_t* labels, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    count += labels[i] >= 0 ? 1 : 0;
  }
  return count;
}

}  // namespace lockstep::kernels::cpu
