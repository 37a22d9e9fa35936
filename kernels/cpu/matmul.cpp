#include "kernels/cpu/matmul.h"

#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm.h"

namespace lockstep::kernels::cpu {
namespace {

std::int64_t row_of_x(const MatmulShape& shape) {
  return shape.ldx == 0 ? shape.k : shape.ldx;
}

std::int64_t row_of_y(const MatmulShape& shape) {
  return shape.ldy == 0 ? shape.n : shape.ldy;
}

}  // namespace

template <typename T>
void matmul(const T* x, const T* weight, const T* bias, T* y, const MatmulShape& shape) {
  gemm(GemmArguments<T>{.m = shape.m,
                        .n = shape.n,
                        .k = shape.k,
                        .a = x,
                        .lda = row_of_x(shape),
                        .b = weight,
                        .ldb = shape.k,
                        .transpose_b = true,
                        .c = y,
                        .ldc = row_of_y(shape)});
  if (bias != nullptr) {
    best<Elementwise<T>>().add_bias(bias, y, shape.m, shape.n, row_of_y(shape));
  }
}

template <typename T>
void matmul_grad_input(
    const T* dy, const T* weight, T* dx, bool accumulate, const MatmulShape& shape) {
  gemm(GemmArguments<T>{.m = shape.m,
                        .n = shape.k,
                        .k = shape.n,
                        .a = dy,
                        .lda = row_of_y(shape),
                        .b = weight,
                        .ldb = shape.k,
                        .c = dx,
                        .ldc = row_of_x(shape),
                        .accumulate = accumulate});
}

template <typename T>
void matmul_grad_weight(
    const T* dy, const T* x, T* dweight, bool accumulate, const MatmulShape& shape) {
  gemm(GemmArguments<T>{.m = shape.n,
                        .n = shape.k,
                        .k = shape.m,
                        .a = dy,
                        .lda = row_of_y(shape),
                        .transpose_a = true,
                        .b = x,
                        .ldb = row_of_x(shape),
                        .c = dweight,
                        .ldc = shape.k,
                        .accumulate = accumulate});
}

template void matmul(const float*, const float*, const float*, float*, const MatmulShape&);
template void matmul(const double*, const double*, const double*, double*, const MatmulShape&);
template void matmul_grad_input(const float*, const float*, float*, bool, const MatmulShape&);
template void matmul_grad_input(const double*, const double*, double*, bool, const MatmulShape&);
template void matmul_grad_weight(const float*, const float*, float*, bool, const MatmulShape&);
template void matmul_grad_weight(const double*, const double*, double*, bool, const MatmulShape&);

}  // namespace lockstep::kernels::cpu
