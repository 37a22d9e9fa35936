// Eigen is a macro here (kernels/CMakeLists.txt): each instruction set has a namespace of its own,
// so that the linker cannot take one level's instantiation for another's.
#include <Eigen/Core>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd.h"

namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL {
namespace {

template <typename T>
using Stored = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                          Eigen::Unaligned,
                          Eigen::OuterStride<>>;
template <typename T>
using Result = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                          Eigen::Unaligned,
                          Eigen::OuterStride<>>;

template <typename T, typename A, typename B>
void multiply(const GemmArguments<T>& g, const A& a, const B& b) {
  Result<T> c(g.c, g.m, g.n, Eigen::OuterStride<>(g.ldc));
  if (g.accumulate) {
    c.noalias() += a * b;
  } else {
    c.noalias() = a * b;
  }
}

template <typename T, typename A>
void multiply(const GemmArguments<T>& g, const A& a) {
  const Stored<T> b(
      g.b, g.transpose_b ? g.n : g.k, g.transpose_b ? g.k : g.n, Eigen::OuterStride<>(g.ldb));
  if (g.transpose_b) {
    multiply(g, a, b.transpose());
  } else {
    multiply(g, a, b);
  }
}

template <typename T>
void eigen_gemm(const GemmArguments<T>& g) {
  const Stored<T> a(
      g.a, g.transpose_a ? g.k : g.m, g.transpose_a ? g.m : g.k, Eigen::OuterStride<>(g.lda));
  if (g.transpose_a) {
    multiply(g, a.transpose());
  } else {
    multiply(g, a);
  }
}

}  // namespace

template <typename T>
struct Implementation<EigenGemm<T>> {
  static constexpr EigenGemm<T> table() { return {.gemm = eigen_gemm<T>}; }
};
template const EigenGemm<float>& table();
template const EigenGemm<double>& table();

}  // namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL
