// Activations and their gradients, elementwise.
//
// GELU is the tanh form of GPT-2 ("gelu_new"): x / (1 + exp(-2u)), u = sqrt(2 / pi) (x + 0.044715
// x^3), which is 0.5 x (1 + tanh u) without the cancellation of tanh near -1.
#pragma once

#include <cstdint>

namespace lockstep::kernels::cpu {

template <typename T>
struct Activation {
  /// y[i] = gelu(x[i]); y may be x.
  void (*gelu)(const T* x, T* y, std::int64_t n);
  /// dx[i] = dy[i] gelu'(x[i]); dx may be dy or x.
  void (*gelu_grad)(const T* dy, const T* x, T* dx, std::int64_t n);
  void (*relu)(const T* x, T* y, std::int64_t n);
  void (*relu_grad)(const T* dy, const T* x, T* dx, std::int64_t n);
  /// y (m, f) = silu(gate) up; a row of gate_up (m, 2f) is the gate's f numbers, then up's.
  void (*swiglu)(const T* gate_up, T* y, std::int64_t m, std::int64_t f);
  /// dgate_up (m, 2f) from dy (m, f); may be gate_up itself.
  void (*swiglu_grad)(const T* dy, const T* gate_up, T* dgate_up, std::int64_t m, std::int64_t f);
};

}  // namespace lockstep::kernels::cpu
