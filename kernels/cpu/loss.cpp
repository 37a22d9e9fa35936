#include "kernels/cpu/loss.h"

#include "kernels/cpu/simd.h"

namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL {
namespace {

template <typename T>
T minus_infinity() {
  return -static_cast<T>(__builtin_inff());
}

struct Maximum {
  template <typename A>
  A operator()(A a, A b) const {
    return a > b ? a : b;
  }
};

template <typename T>
void local_max(const T* logits, T* maximum, LossShape shape) {
  for (std::int64_t row = 0; row < shape.m; ++row) {
    const T* x = logits + row * shape.local;
    maximum[row] = reduce<T>(
        shape.valid_here(), minus_infinity<T>(), Maximum{}, [=](auto get) { return get(x); });
  }
}

template <typename T>
void local_sums(const T* logits,
                const T* maximum,
                const std::int64_t* labels,
                T* sums,
                T* target,
                LossShape shape) {
  for (std::int64_t row = 0; row < shape.m; ++row) {
    const T* x = logits + row * shape.local;
    const T top = maximum[row];
    sums[row] = sum<T>(shape.valid_here(), [=](auto get) { return exponential(get(x) - top); });
    const std::int64_t column = labels[row] - shape.first;
    const bool here = labels[row] >= 0 && column >= 0 && column < shape.valid_here();
    target[row] = here ? x[column] : T(0);
  }
}

/// One row of the gradient; `factor` is 0 for a row without label.
template <typename T>
void gradient_row(const T* x, T top, T scale, T* d, const LossShape& shape) {
  const std::int64_t valid = shape.valid_here();
  for_each_vector<T>(valid, [=](auto get, auto put) { put(d, exponential(get(x) - top) * scale); });
  std::memset(d + valid, 0, static_cast<std::size_t>(shape.local - valid) * sizeof(T));
}

// Seven operands, as core/operands.h lists them.
template <typename T>
void finish(const T* logits,  // NOLINT(readability-function-size)
            LossRows<T> rows,
            const std::int64_t* labels,
            LossFactors factors,
            T* loss,
            T* dlogits,
            LossShape shape) {
  double total = 0;
  for (std::int64_t row = 0; row < shape.m; ++row) {
    const bool counts = labels[row] >= 0;
    if (counts) {
      total += __builtin_log(static_cast<double>(rows.sum[row])) +
               static_cast<double>(rows.maximum[row]) - static_cast<double>(rows.target[row]);
    }
    if (dlogits == nullptr) {
      continue;
    }
    T* d = dlogits + row * shape.local;
    if (!counts) {
      std::memset(d, 0, static_cast<std::size_t>(shape.local) * sizeof(T));
      continue;
    }
    const auto scale = static_cast<T>(factors.gradient / static_cast<double>(rows.sum[row]));
    gradient_row(logits + row * shape.local, rows.maximum[row], scale, d, shape);
    const std::int64_t column = labels[row] - shape.first;
    if (column >= 0 && column < shape.valid_here()) {
      d[column] -= static_cast<T>(factors.gradient);
    }
  }
  const auto value = static_cast<T>(factors.loss * total);
  loss[0] = factors.accumulate ? loss[0] + value : value;
}

}  // namespace

template <typename T>
struct Implementation<Loss<T>> {
  static constexpr Loss<T> table() {
    return {.local_max = local_max<T>, .local_sums = local_sums<T>, .finish = finish<T>};
  }
};
template const Loss<float>& table();
template const Loss<double>& table();

}  // namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL
