#include "kernels/cpu/scalars.h"

#include <cmath>

namespace lockstep::kernels::cpu {

double clip_coefficient(double sum_of_squares, double max_norm) {
  const double coefficient = max_norm / (std::sqrt(sum_of_squares) + 1e-6);
  return coefficient > 1 ? 1 : coefficient;  // a NaN stays one
}

template <typename T>
void scaler_update(bool overflow, const ScalerSettings& settings, T state[2]) {
  if (overflow) {
    state[0] = static_cast<T>(static_cast<double>(state[0]) * settings.backoff);
    state[1] = 0;
    return;
  }
  state[1] += 1;
  if (static_cast<std::int64_t>(state[1]) == settings.interval) {
    const auto grown = static_cast<T>(static_cast<double>(state[0]) * settings.growth);
    state[0] = std::isfinite(grown) ? grown : state[0];
    state[1] = 0;
  }
}

template void scaler_update(bool, const ScalerSettings&, float*);
template void scaler_update(bool, const ScalerSettings&, double*);

}  // namespace lockstep::kernels::cpu
