// Activations, dropout and arithmetic, element by element.
#include <algorithm>
#include <cstring>

#include "executor/dropout_key.h"
#include "executor/work_call.h"
#include "kernels/cpu/activation.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/elementwise.h"

namespace lockstep::exec {
namespace {

namespace cpu = kernels::cpu;

template <typename T>
void activation(const WorkCall& call) {
  const cpu::Activation<T>& kernels = cpu::best<cpu::Activation<T>>();
  const T* a = call.in[0].as<T>();
  const T* b = call.in.size() > 1 ? call.in[1].as<T>() : nullptr;
  T* const y = call.out[0].as<T>();
  const std::int64_t m = call.extent(0);
  const std::int64_t f = call.extent(1);
  switch (call.op.work) {
    case Work::kGelu:
      return kernels.gelu(a, y, m * f);
    case Work::kGeluGrad:
      return kernels.gelu_grad(a, b, y, m * f);
    case Work::kRelu:
      return kernels.relu(a, y, m * f);
    case Work::kReluGrad:
      return kernels.relu_grad(a, b, y, m * f);
    case Work::kSwiGlu:
      return kernels.swiglu(a, y, m, f);
    default:
      return kernels.swiglu_grad(a, b, y, m, f);
  }
}

template <typename T>
void dropout(const WorkCall& call) {
  const cpu::Dropout<T>& kernels = cpu::best<cpu::Dropout<T>>();
  const double probability = call.training.dropout;
  T* const y = call.out[0].as<T>();
  if (call.op.work == Work::kDropoutGrad) {
    return kernels.dropout_grad(
        call.in[0].as<T>(), call.in[1].as<std::uint8_t>(), probability, y, call.out[0].elements);
  }
  const std::int64_t rows = call.extent(0);
  const std::int64_t columns = call.extent(1);
  return kernels.dropout(call.in[0].as<T>(),
                         probability,
                         dropout_key(call),
                         y,
                         call.out[1].as<std::uint8_t>(),
                         {rows, columns, columns, call.first_token(rows), 0});
}

template <typename T>
void arithmetic(const WorkCall& call) {
  const cpu::Elementwise<T>& kernels = cpu::best<cpu::Elementwise<T>>();
  T* const y = call.out[0].as<T>();
  const std::int64_t n = call.out[0].elements;
  switch (call.op.work) {
    case Work::kAdd:
      kernels.add(call.in[0].as<T>(), call.in[1].as<T>(), y, n);
      if (call.factor) {
        kernels.scale(y, static_cast<T>(*call.factor), y, n);
      }
      return;
    case Work::kScale: {
      double factor = call.factor_or_one();
      if (call.in.size() > 1) {
        with_real(call.in[1].dtype,
                  [&]<typename F>(F*) { factor = static_cast<double>(*call.in[1].as<F>()); });
      }
      if (factor != 1 || call.in[0].data != y) {
        kernels.scale(call.in[0].as<T>(), static_cast<T>(factor), y, n);
      }
      return;
    }
    default:
      return;
  }
}

}  // namespace

void run_by_element(const WorkCall& call) {
  if (call.op.work == Work::kZero) {
    std::memset(call.out[0].data,
                0,
                static_cast<std::size_t>(call.out[0].elements * size_of(call.out[0].dtype)));
    return;
  }
  with_real(call.out[0].dtype, [&]<typename T>(T*) {
    switch (call.op.work) {
      case Work::kAdd:
      case Work::kScale:
        return arithmetic<T>(call);
      case Work::kDropout:
      case Work::kDropoutGrad:
        return dropout<T>(call);
      default:
        return activation<T>(call);
    }
  });
}

}  // namespace lockstep::exec
