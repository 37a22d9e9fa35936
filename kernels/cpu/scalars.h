// Work on single numbers: the clip coefficient and the loss scaler's state.
#pragma once

#include <cstdint>

namespace lockstep::kernels::cpu {

/// min(1, max_norm / (sqrt(sum_of_squares) + 1e-6)): torch.nn.utils.clip_grad_norm_.
double clip_coefficient(double sum_of_squares, double max_norm);

struct ScalerSettings {
  double growth = 2;
  double backoff = 0.5;
  std::int64_t interval = 2000;  ///< steps without overflow before the scale grows
};

/// torch.cuda.amp.GradScaler.update: state = {scale, steps since the last change}.
template <typename T>
void scaler_update(bool overflow, const ScalerSettings& settings, T state[2]);

}  // namespace lockstep::kernels::cpu
