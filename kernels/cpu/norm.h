// LayerNorm, RMSNorm and Qwen3's RMSNorm per head, with gradients.
//
// A row's result depends on that row alone. Statistics per row, as the backward pass wants them:
// LayerNorm {mean, 1 / standard deviation}, RMSNorm {1 / root mean square}, head norm one 1 / rms
// for each head of the queries and then of the keys.
#pragma once

#include <cstdint>

namespace lockstep::kernels::cpu {

/// A fused row of queries, keys and values: heads * dim, kv_heads * dim, kv_heads * dim numbers.
struct HeadShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t dim = 0;

  constexpr std::int64_t query_width() const { return heads * dim; }
  constexpr std::int64_t kv_width() const { return kv_heads * dim; }
  constexpr std::int64_t width() const { return query_width() + 2 * kv_width(); }
};

/// m rows of h numbers.
struct NormShape {
  std::int64_t m = 0;
  std::int64_t h = 0;
};

template <typename T>
struct NormParameters {
  const T* weight = nullptr;      ///< (h); head norm: of the queries (dim)
  const T* bias = nullptr;        ///< (h) or none; only LayerNorm's is read
  const T* key_weight = nullptr;  ///< head norm only (dim)
  double epsilon = 1e-5;
};

template <typename T>
struct NormSaved {
  const T* x = nullptr;           ///< the input
  const T* statistics = nullptr;  ///< what forward wrote
};

template <typename T>
struct NormGradients {
  T* dx = nullptr;
  T* dweight = nullptr;
  T* dbias = nullptr;        ///< LayerNorm, or none
  T* dkey_weight = nullptr;  ///< head norm only
  bool accumulate = false;   ///< dweight, dbias and dkey_weight are added to; dx never is
};

template <typename T>
struct Norm {
  /// y = (x - mean) / sqrt(variance + epsilon) weight + bias, biased variance.
  void (*layer)(const T* x, NormParameters<T> parameters, T* y, T* statistics, NormShape shape);
  void (*layer_grad)(
      const T* dy, NormSaved<T> saved, const T* weight, NormGradients<T> out, NormShape shape);
  /// y = x / sqrt(mean(x^2) + epsilon) weight.
  void (*rms)(const T* x, NormParameters<T> parameters, T* y, T* statistics, NormShape shape);
  void (*rms_grad)(
      const T* dy, NormSaved<T> saved, const T* weight, NormGradients<T> out, NormShape shape);
  /// Root mean square norm of each head of queries and keys; values are copied. m fused rows.
  void (*heads)(const T* x,
                NormParameters<T> parameters,
                T* y,
                T* statistics,
                std::int64_t m,
                HeadShape shape);
  void (*heads_grad)(const T* dy,
                     NormSaved<T> saved,
                     NormParameters<T> parameters,
                     NormGradients<T> out,
                     std::int64_t m,
                     HeadShape shape);
};

}  // namespace lockstep::kernels::cpu
