// Learning rate of a step: linear warm-up, then half a cosine down to a fraction of the peak
// (Loshchilov and Hutter, arXiv:1608.03983, section 3, without restarts).
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/training.h"

namespace lockstep::exec {

/// For the 0-based `step` of a run of `steps`. The first step of a warm-up has rate peak / warmup.
inline double learning_rate(const TrainingSpec& training, std::int64_t step, std::int64_t steps) {
  const double peak = training.learning_rate;
  if (step < training.warmup_steps) {
    return peak * static_cast<double>(step + 1) / static_cast<double>(training.warmup_steps);
  }
  const std::int64_t rest = steps - training.warmup_steps;
  const double progress =
      rest > 1 ? static_cast<double>(step - training.warmup_steps) / static_cast<double>(rest - 1)
               : 0.0;
  const double floor = peak * training.final_learning_rate;
  return floor + (peak - floor) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(progress, 1.0)));
}

}  // namespace lockstep::exec
