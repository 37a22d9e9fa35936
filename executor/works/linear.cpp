// Matrix products of linear modules: several weights write side by side into one output.
#include "executor/work_call.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/matmul.h"

namespace lockstep::exec {
namespace {

namespace cpu = kernels::cpu;

std::size_t weight_count(const WorkCall& call) {
  return static_cast<std::size_t>(call.module().weights);
}

/// visit(weight number, its rows, first column in the output): rows follow from its elements.
template <typename Visit>
void for_each_weight(const WorkCall& call, std::span<const Operand> weights, Visit&& visit) {
  std::int64_t column = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::int64_t rows = weights[i].elements / call.extent(2);
    visit(i, rows, column);
    column += rows;
  }
}

/// in: x, weights..., biases...; out: y.
template <typename T>
void forward(const WorkCall& call) {
  const std::size_t weights = weight_count(call);
  const T* x = call.in[0].as<T>();
  T* const y = call.out[0].as<T>();
  for_each_weight(call,
                  call.in.subspan(1, weights),
                  [&](std::size_t i, std::int64_t rows, std::int64_t column) {
                    const std::size_t bias = 1 + weights + i;
                    cpu::matmul(x,
                                call.in[1 + i].as<T>(),
                                bias < call.in.size() ? call.in[bias].as<T>() : nullptr,
                                y + column,
                                {call.extent(0), rows, call.extent(2), 0, call.extent(1)});
                  });
}

/// in: dy, weights...; out: dx.
template <typename T>
void input_gradient(const WorkCall& call) {
  const T* dy = call.in[0].as<T>();
  for_each_weight(
      call, call.in.subspan(1), [&](std::size_t i, std::int64_t rows, std::int64_t column) {
        cpu::matmul_grad_input(dy + column,
                               call.in[1 + i].as<T>(),
                               call.out[0].as<T>(),
                               i > 0,
                               {call.extent(0), rows, call.extent(2), 0, call.extent(1)});
      });
}

/// in: dy, x; out: dweights..., dbiases....
template <typename T>
void weight_gradient(const WorkCall& call) {
  const cpu::Elementwise<T>& kernels = cpu::best<cpu::Elementwise<T>>();
  const std::size_t weights = weight_count(call);
  const T* dy = call.in[0].as<T>();
  for_each_weight(
      call, call.out.first(weights), [&](std::size_t i, std::int64_t rows, std::int64_t column) {
        const cpu::MatmulShape shape{call.extent(0), rows, call.extent(2), 0, call.extent(1)};
        cpu::matmul_grad_weight(
            dy + column, call.in[1].as<T>(), call.out[i].as<T>(), call.accumulates(), shape);
        if (weights + i < call.out.size()) {
          kernels.bias_grad(dy + column,
                            call.extent(1),
                            call.out[weights + i].as<T>(),
                            call.accumulates(),
                            call.extent(0),
                            rows);
        }
      });
}

/// kBias, kBiasGrad: shape {m, n}.
template <typename T>
void bias(const WorkCall& call) {
  const cpu::Elementwise<T>& kernels = cpu::best<cpu::Elementwise<T>>();
  const std::int64_t m = call.extent(0);
  const std::int64_t n = call.extent(1);
  if (call.op.work == Work::kBias) {
    return kernels.add_bias(call.in[1].as<T>(), call.out[0].as<T>(), m, n, n);
  }
  return kernels.bias_grad(call.in[0].as<T>(), n, call.out[0].as<T>(), call.accumulates(), m, n);
}

}  // namespace

void run_linear(const WorkCall& call) {
  with_real(call.in[0].dtype, [&]<typename T>(T*) {
    switch (call.op.work) {
      case Work::kMatmul:
        return forward<T>(call);
      case Work::kMatmulGradInput:
        return input_gradient<T>(call);
      case Work::kMatmulGradWeight:
        return weight_gradient<T>(call);
      default:
        return bias<T>(call);
    }
  });
}

}  // namespace lockstep::exec
