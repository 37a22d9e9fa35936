// Sums, scaling, casts, biases and checks over flat arrays.
//
// An element's result does not depend on where an array begins or ends, so a shard of a vector gets
// the bits that the whole vector would. sum_squares is the one reduction: its order is fixed for a
// given array, and another cut of the same numbers may differ in the last bits.
#pragma once

#include <cstdint>

namespace lockstep::kernels::cpu {

/// Storage of 16 bits, for casts. bfloat16: the upper half of a float.
struct Bf16 {
  std::uint16_t bits = 0;
};
/// IEEE 754 binary16.
struct Fp16 {
  std::uint16_t bits = 0;
};

template <typename T>
struct Elementwise {
  /// y[i] = a[i] + b[i]; y may be a or b.
  void (*add)(const T* a, const T* b, T* y, std::int64_t n);
  /// y[i] = x[i] * factor; y may be x.
  void (*scale)(const T* x, T factor, T* y, std::int64_t n);
  /// y[i] += x[i] * factor.
  void (*add_scaled)(const T* x, T factor, T* y, std::int64_t n);
  /// Adds bias (n) to each of m rows of y, ldy apart.
  void (*add_bias)(const T* bias, T* y, std::int64_t m, std::int64_t n, std::int64_t ldy);
  /// dbias[j] = (accumulate ? dbias[j] : 0) + sum of dy over m rows, from first to last.
  void (*bias_grad)(
      const T* dy, std::int64_t ldy, T* dbias, bool accumulate, std::int64_t m, std::int64_t n);
  /// x[i] *= factor; true if any x[i] was infinite or NaN before.
  bool (*unscale_and_check)(T* x, T factor, std::int64_t n);
  /// Sum of squares, in double whatever T is.
  double (*sum_squares)(const T* x, std::int64_t n);
  /// Casts to and from 16-bit storage round to nearest, ties to even; y[i] = x[i] * factor.
  void (*to_bf16)(const T* x, T factor, Bf16* y, std::int64_t n);
  void (*from_bf16)(const Bf16* x, T factor, T* y, std::int64_t n);
  void (*to_fp16)(const T* x, T factor, Fp16* y, std::int64_t n);
  void (*from_fp16)(const Fp16* x, T factor, T* y, std::int64_t n);
  /// To and from the other of float and double; the factor is applied in double.
  void (*to_float)(const T* x, double factor, float* y, std::int64_t n);
  void (*to_double)(const T* x, double factor, double* y, std::int64_t n);
};

}  // namespace lockstep::kernels::cpu
