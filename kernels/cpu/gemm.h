// General matrix product, row-major: c (m, n) = op(a) op(b), or c += op(a) op(b).
//
// Any number of threads may call at once. double: Eigen, in the calling thread alone. float: oneDNN
// (gemm_dnnl.cpp), with as many threads of its own as the calling thread asked for, or Eigen where
// it is missing (gemm_eigen_float.cpp). The result is a function of the arguments' values, shape
// and strides and of the number of threads: the same call gives the same bits on every rank; a row
// may get other bits when m, n or k are others, because libraries choose their blocking by shape.
// Both libraries allocate packing buffers during the call.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::kernels::cpu {

template <typename T>
struct GemmArguments {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const T* a = nullptr;  ///< (m, k), or (k, m) when transposed
  std::int64_t lda = 0;  ///< elements between stored rows
  bool transpose_a = false;
  const T* b = nullptr;  ///< (k, n), or (n, k) when transposed
  std::int64_t ldb = 0;
  bool transpose_b = false;
  T* c = nullptr;  ///< (m, n)
  std::int64_t ldc = 0;
  bool accumulate = false;
};

void gemm(const GemmArguments<float>& arguments);
void gemm(const GemmArguments<double>& arguments);

/// How many threads share a product of floats that the calling thread asks for; 1 until it says
/// more. Nothing happens where float_gemm_has_threads() is false.
void set_float_gemm_threads(int threads);
bool float_gemm_has_threads();

/// What multiplies floats: "oneDNN 2.6.3" or "Eigen".
std::string_view float_gemm_library();

/// Eigen's product as built for each instruction set.
template <typename T>
struct EigenGemm {
  void (*gemm)(const GemmArguments<T>& arguments);
};

}  // namespace lockstep::kernels::cpu
