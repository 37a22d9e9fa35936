#include "executor/throttle.h"

#include <algorithm>

namespace lockstep::exec {

Clock::time_point Throttle::reserve(int src, int dst, std::int64_t bytes, Clock::time_point begin) {
  auto duration = std::chrono::duration<double>(limit_.latency);
  if (limit_.bytes_per_second > 0) {
    duration += std::chrono::duration<double>(static_cast<double>(bytes) / limit_.bytes_per_second);
  }
  const std::lock_guard lock(mutex_);
  auto& free_at = free_at_[static_cast<std::size_t>(src) * ranks_ + static_cast<std::size_t>(dst)];
  free_at = std::max(free_at, begin) + std::chrono::ceil<Clock::duration>(duration);
  return free_at;
}

}  // namespace lockstep::exec
