// Batch normalisation in parts, so that statistics can be summed over ranks in between (torch's
// SyncBatchNorm): sums -> [all-reduce] -> apply, and grad_sums -> [all-reduce] -> grad_apply.
//
// sums (2c + 1): sum of x per channel, sum of x^2 per channel, number of rows. Gradient sums (2c):
// sum of dy, sum of dy (x - mean). running (2c): mean, then unbiased variance.
#pragma once

#include <cstdint>

namespace lockstep::kernels::cpu {

struct BatchNormShape {
  std::int64_t m = 0;  ///< rows on this rank
  std::int64_t c = 0;  ///< channels
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< of the running statistics
};

template <typename T>
struct BatchNormParameters {
  const T* weight = nullptr;
  const T* bias = nullptr;
};

template <typename T>
struct BatchNormSaved {
  const T* x = nullptr;
  const T* sums = nullptr;
};

/// Gradient sums of this rank, and over all ranks whose statistics were summed.
template <typename T>
struct BatchNormSums {
  const T* local = nullptr;
  const T* global = nullptr;
};

template <typename T>
struct BatchNormGradients {
  T* dx = nullptr;
  T* dweight = nullptr;
  T* dbias = nullptr;
  bool accumulate = false;  ///< dweight and dbias are added to
};

template <typename T>
struct BatchNorm {
  void (*sums)(const T* x, T* sums, BatchNormShape shape);
  /// Also moves the running statistics: running += momentum (batch - running). None where null.
  void (*apply)(const T* x,
                const T* sums,
                BatchNormParameters<T> parameters,
                T* y,
                T* running,
                BatchNormShape shape);
  /// By the running statistics.
  void (*evaluate)(
      const T* x, const T* running, BatchNormParameters<T> parameters, T* y, BatchNormShape shape);
  void (*grad_sums)(const T* dy, const T* x, const T* sums, T* gradient_sums, BatchNormShape shape);
  /// dweight and dbias from the local sums, dx from the global ones.
  void (*grad_apply)(const T* dy,
                     BatchNormSaved<T> saved,
                     BatchNormSums<T> gradient_sums,
                     const T* weight,
                     BatchNormGradients<T> out,
                     BatchNormShape shape);
};

}  // namespace lockstep::kernels::cpu
