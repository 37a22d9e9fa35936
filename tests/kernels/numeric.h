// What the tests of kernels share: seeded numbers, central differences, distances in ulps.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/dispatch.h"
#include "tests/support/catch.h"

namespace lockstep {

/// n numbers of N(0, 1), the same on every run.
template <typename T>
std::vector<T> normal_numbers(std::int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<T> numbers(static_cast<std::size_t>(n));
  for (T& number : numbers) {
    number = static_cast<T>(normal(generator));
  }
  return numbers;
}

template <typename T>
std::vector<T> zeros(std::int64_t n) {
  return std::vector<T>(static_cast<std::size_t>(n));
}

template <typename To, typename From>
std::vector<To> converted(const std::vector<From>& from) {
  return std::vector<To>(from.begin(), from.end());
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

/// Largest difference over the largest magnitude of `exact`.
template <typename T>
double relative_error(const std::vector<T>& values, const std::vector<double>& exact) {
  REQUIRE(values.size() == exact.size());
  double error = 0;
  double largest = 1e-30;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(values[i]) - exact[i]);
    // A comparison with NaN is false: count it as an error.
    error = difference <= error ? error : difference;
    largest = std::fmax(largest, std::fabs(exact[i]));
  }
  return error / largest;
}

/// In units of the last place of the exact value, rounded to float.
inline double ulps(float value, double exact) {
  const auto rounded = static_cast<float>(std::fabs(exact));
  const float next = std::nextafterf(rounded, std::numeric_limits<float>::infinity());
  return std::fabs(static_cast<double>(value) - exact) / static_cast<double>(next - rounded);
}

/// Requires `gradient` to be the gradient of f() with respect to x, by central differences.
template <typename Function>
void require_gradient(std::vector<double>& x,
                      const std::vector<double>& gradient,
                      Function f,
                      double tolerance = 1e-7) {
  REQUIRE(x.size() == gradient.size());
  const double step = 1e-5;
  const std::size_t stride = x.size() > 400 ? x.size() / 200 : 1;
  double scale = 1e-3;
  for (const double g : gradient) {
    scale = std::fmax(scale, std::fabs(g));
  }
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); i += stride) {
    const double old = x[i];
    x[i] = old + step;
    const double above = f();
    x[i] = old - step;
    const double below = f();
    x[i] = old;
    const double difference = std::fabs((above - below) / (2 * step) - gradient[i]);
    worst = difference <= worst ? worst : difference;
  }
  INFO("worst difference " << worst << " of gradients up to " << scale);
  REQUIRE(worst <= tolerance * scale);
}

/// Levels that this processor can run.
inline std::vector<kernels::cpu::Level> levels_here() {
  std::vector<kernels::cpu::Level> levels;
  for (int i = 0; i < kernels::cpu::kLevelCount; ++i) {
    const auto level = static_cast<kernels::cpu::Level>(i);
    if (kernels::cpu::available(level)) {
      levels.push_back(level);
    }
  }
  return levels;
}

}  // namespace lockstep
