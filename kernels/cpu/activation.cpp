#include "kernels/cpu/activation.h"

#include "kernels/cpu/simd.h"

namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL {
namespace {

template <typename T>
constexpr T kGeluScale = T(0.79788456080286535588);  // sqrt(2 / pi)
template <typename T>
constexpr T kGeluCube = T(0.044715);

/// 1 / (1 + e^-x).
template <typename T>
V<T> sigmoid(V<T> x) {
  return T(1) / (T(1) + exponential(-x));
}

template <typename T>
V<T> twice_gelu_argument(V<T> x) {
  return (T(2) * kGeluScale<T>)*(x + kGeluCube<T> * (x * x * x));
}

template <typename T>
void gelu(const T* x, T* y, std::int64_t n) {
  for_each_vector<T>(n, [=](auto get, auto put) {
    const V<T> value = get(x);
    put(y, value * sigmoid<T>(twice_gelu_argument<T>(value)));
  });
}

/// s + x s (1 - s) (2u)', s = sigmoid(2u).
template <typename T>
void gelu_grad(const T* dy, const T* x, T* dx, std::int64_t n) {
  for_each_vector<T>(n, [=](auto get, auto put) {
    const V<T> value = get(x);
    const V<T> s = sigmoid<T>(twice_gelu_argument<T>(value));
    const V<T> slope = (T(2) * kGeluScale<T>)*(T(1) + (T(3) * kGeluCube<T>)*(value * value));
    put(dx, get(dy) * (s + value * slope * (s * (T(1) - s))));
  });
}

template <typename T>
void relu(const T* x, T* y, std::int64_t n) {
  for_each_vector<T>(n, [=](auto get, auto put) {
    const V<T> value = get(x);
    put(y, value < T(0) ? V<T>{} : value);
  });
}

template <typename T>
void relu_grad(const T* dy, const T* x, T* dx, std::int64_t n) {
  for_each_vector<T>(n, [=](auto get, auto put) { put(dx, get(x) > T(0) ? get(dy) : V<T>{}); });
}

template <typename T>
void swiglu(const T* gate_up, T* y, std::int64_t m, std::int64_t f) {
  for (std::int64_t row = 0; row < m; ++row) {
    const T* gate = gate_up + row * 2 * f;
    for_each_vector<T>(f, [=](auto get, auto put) {
      const V<T> g = get(gate);
      put(y + row * f, g * sigmoid<T>(g) * get(gate + f));
    });
  }
}

template <typename T>
void swiglu_grad(const T* dy, const T* gate_up, T* dgate_up, std::int64_t m, std::int64_t f) {
  for (std::int64_t row = 0; row < m; ++row) {
    const T* gate = gate_up + row * 2 * f;
    T* dgate = dgate_up + row * 2 * f;
    for_each_vector<T>(f, [=](auto get, auto put) {
      const V<T> g = get(gate);
      const V<T> up = get(gate + f);
      const V<T> d = get(dy + row * f);
      const V<T> s = sigmoid<T>(g);
      put(dgate, d * up * (s * (T(1) + g * (T(1) - s))));
      put(dgate + f, d * (g * s));
    });
  }
}

}  // namespace

template <typename T>
struct Implementation<Activation<T>> {
  static constexpr Activation<T> table() {
    return {.gelu = gelu<T>,
            .gelu_grad = gelu_grad<T>,
            .relu = relu<T>,
            .relu_grad = relu_grad<T>,
            .swiglu = swiglu<T>,
            .swiglu_grad = swiglu_grad<T>};
  }
};
template const Activation<float>& table();
template const Activation<double>& table();

}  // namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL
