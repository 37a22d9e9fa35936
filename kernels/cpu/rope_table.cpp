#include <cmath>

#include "kernels/cpu/embedding.h"

namespace lockstep::kernels::cpu {

template <typename T>
void rope_table(const RopeAngles& angles, T* cosine, T* sine) {
  const std::int64_t half = angles.dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(angles.dim);
    const double frequency = std::pow(angles.theta, exponent) / angles.scaling;
    for (std::int64_t position = 0; position < angles.seq; ++position) {
      const double angle = static_cast<double>(position) * frequency;
      cosine[position * half + i] = static_cast<T>(std::cos(angle));
      sine[position * half + i] = static_cast<T>(std::sin(angle));
    }
  }
}

template void rope_table(const RopeAngles&, float*, float*);
template void rope_table(const RopeAngles&, double*, double*);

}  // namespace lockstep::kernels::cpu
