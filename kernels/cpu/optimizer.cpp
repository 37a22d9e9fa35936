#include "kernels/cpu/optimizer.h"

#include "kernels/cpu/simd.h"

namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL {
namespace {

template <typename T>
void sgd(T* parameter, const T* gradient, const SgdSettings& settings, std::int64_t n) {
  const auto decay = static_cast<T>(settings.weight_decay);
  const auto rate = static_cast<T>(-settings.learning_rate);
  for_each_vector<T>(n, [=](auto get, auto put) {
    const V<T> value = get(parameter);
    const V<T> g = get(gradient) + value * decay;
    put(parameter, value + g * rate);
  });
}

template <typename T>
void momentum(
    T* parameter, const T* gradient, T* buffer, const SgdSettings& settings, std::int64_t n) {
  const auto decay = static_cast<T>(settings.weight_decay);
  const auto rate = static_cast<T>(-settings.learning_rate);
  const auto keep = static_cast<T>(settings.momentum);
  const auto take = static_cast<T>(1 - settings.dampening);
  const bool first = settings.first_step;
  for_each_vector<T>(n, [=](auto get, auto put) {
    const V<T> value = get(parameter);
    const V<T> g = get(gradient) + value * decay;
    const V<T> b = first ? g : get(buffer) * keep + g * take;
    put(buffer, b);
    put(parameter, value + b * rate);
  });
}

template <typename T>
void adamw(T* parameter,
           const T* gradient,
           T* first,
           T* second,
           const AdamWSettings& settings,
           std::int64_t n) {
  const auto step = static_cast<double>(settings.step);
  const double correction1 = 1 - __builtin_pow(settings.beta1, step);
  const double correction2 = 1 - __builtin_pow(settings.beta2, step);
  const auto keep = static_cast<T>(1 - settings.learning_rate * settings.weight_decay);
  const auto take1 = static_cast<T>(1 - settings.beta1);
  const auto beta2 = static_cast<T>(settings.beta2);
  const auto take2 = static_cast<T>(1 - settings.beta2);
  const auto root2 = static_cast<T>(__builtin_sqrt(correction2));
  const auto epsilon = static_cast<T>(settings.epsilon);
  const auto rate = static_cast<T>(-(settings.learning_rate / correction1));
  for_each_vector<T>(n, [=](auto get, auto put) {
    const V<T> g = get(gradient);
    const V<T> value = get(parameter) * keep;  // mul_(1 - lr wd)
    const V<T> old = get(first);
    const V<T> m = old + take1 * (g - old);              // lerp_(grad, 1 - beta1)
    const V<T> v = get(second) * beta2 + take2 * g * g;  // mul_(beta2).addcmul_(g, g, 1 - beta2)
    const V<T> denominator = square_root<T>(v) / root2 + epsilon;
    put(first, m);
    put(second, v);
    put(parameter, value + (rate * m) / denominator);  // addcdiv_(m, denominator, -step_size)
  });
}

}  // namespace

template <typename T>
struct Implementation<Optimizer<T>> {
  static constexpr Optimizer<T> table() {
    return {.sgd = sgd<T>, .momentum = momentum<T>, .adamw = adamw<T>};
  }
};
template const Optimizer<float>& table();
template const Optimizer<double>& table();

}  // namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL
