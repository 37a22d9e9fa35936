// Linear layers: y (m, n) = x (m, k) weight^T + bias, weight (n, k) as torch.nn.Linear stores it,
// and its two gradients.
//
// Leading dimensions let several weights write side by side into one y (queries, keys and values;
// gate and up): call once per weight with y moved to its columns; for the input gradient the second
// and later calls accumulate. About bits: cpu/gemm.h.
#pragma once

#include <cstdint>

namespace lockstep::kernels::cpu {

struct MatmulShape {
  std::int64_t m = 0;    ///< tokens
  std::int64_t n = 0;    ///< output features
  std::int64_t k = 0;    ///< input features
  std::int64_t ldx = 0;  ///< elements between rows of x and dx; 0 = k
  std::int64_t ldy = 0;  ///< elements between rows of y and dy; 0 = n
};

/// `bias` (n) may be null.
template <typename T>
void matmul(const T* x, const T* weight, const T* bias, T* y, const MatmulShape& shape);

/// dx (m, k) = dy weight, or += it.
template <typename T>
void matmul_grad_input(
    const T* dy, const T* weight, T* dx, bool accumulate, const MatmulShape& shape);

/// dweight (n, k) = dy^T x, or += it. The bias gradient is Elementwise<T>::bias_grad.
template <typename T>
void matmul_grad_weight(
    const T* dy, const T* x, T* dweight, bool accumulate, const MatmulShape& shape);

}  // namespace lockstep::kernels::cpu
