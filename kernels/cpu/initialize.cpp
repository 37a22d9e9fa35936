#include "kernels/cpu/initialize.h"

#include <algorithm>
#include <cmath>

namespace lockstep::kernels::cpu {
namespace {

/// (0, 1], from 53 bits.
double uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits + 1) * 0x1p-53;
}

}  // namespace

template <typename T>
void initialize_normal(
    T* x, std::int64_t first, std::int64_t n, double deviation, const RandomKey& key) {
  constexpr double kTwoPi = 6.283185307179586476925;
  double pair[2] = {0, 0};  // block b gives elements 2b and 2b + 1
  for (std::int64_t i = 0; i < n; ++i) {
    const auto element = static_cast<std::uint64_t>(first + i);
    if (i == 0 || element % 2 == 0) {
      const RandomBlock block = random_block(key, element / 2);
      const double radius =
          deviation * std::sqrt(-2 * std::log(uniform(block.word[0], block.word[1])));
      const double angle = kTwoPi * uniform(block.word[2], block.word[3]);
      pair[0] = radius * std::cos(angle);
      pair[1] = radius * std::sin(angle);
    }
    x[i] = static_cast<T>(pair[element % 2]);
  }
}

template <typename T>
void initialize_constant(T* x, std::int64_t n, T value) {
  std::fill_n(x, n, value);
}

template void initialize_normal(float*, std::int64_t, std::int64_t, double, const RandomKey&);
template void initialize_normal(double*, std::int64_t, std::int64_t, double, const RandomKey&);
template void initialize_constant(float*, std::int64_t, float);
template void initialize_constant(double*, std::int64_t, double);

}  // namespace lockstep::kernels::cpu
