#include "kernels/cpu/elementwise.h"

#include "kernels/cpu/simd.h"

namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL {
namespace {

template <typename T>
void add(const T* a, const T* b, T* y, std::int64_t n) {
  for_each_vector<T>(n, [=](auto get, auto put) { put(y, get(a) + get(b)); });
}

template <typename T>
void scale(const T* x, T factor, T* y, std::int64_t n) {
  for_each_vector<T>(n, [=](auto get, auto put) { put(y, get(x) * factor); });
}

template <typename T>
void add_scaled(const T* x, T factor, T* y, std::int64_t n) {
  for_each_vector<T>(n, [=](auto get, auto put) { put(y, get(y) + get(x) * factor); });
}

template <typename T>
void add_bias(const T* bias, T* y, std::int64_t m, std::int64_t n, std::int64_t ldy) {
  for (std::int64_t row = 0; row < m; ++row) {
    add(y + row * ldy, bias, y + row * ldy, n);
  }
}

template <typename T>
void bias_grad(
    const T* dy, std::int64_t ldy, T* dbias, bool accumulate, std::int64_t m, std::int64_t n) {
  if (!accumulate) {
    std::memset(dbias, 0, static_cast<std::size_t>(n) * sizeof(T));
  }
  for (std::int64_t row = 0; row < m; ++row) {
    add(dbias, dy + row * ldy, dbias, n);
  }
}

/// Not finite: x - x is not 0 for infinities and NaN.
template <typename T>
bool unscale_and_check(T* x, T factor, std::int64_t n) {
  typename Vec<T>::Int bad = {};
  for_each_vector<T>(n, [&](auto get, auto put) {
    const V<T> value = get(x);
    bad |= (value - value != T(0));
    put(x, value * factor);
  });
  bool any = false;
  for (int lane = 0; lane < kLanes<T>; ++lane) {
    any = any || bad[lane] != 0;
  }
  return any;
}

/// Eight double lanes, like sum<double>, for either type.
template <typename T>
double sum_squares(const T* x, std::int64_t n) {
  double lanes[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int lane = 0; lane < 8; ++lane) {
      const auto value = static_cast<double>(x[i + lane]);
      lanes[lane] += value * value;
    }
  }
  for (int lane = 0; i + lane < n; ++lane) {
    const auto value = static_cast<double>(x[i + lane]);
    lanes[lane] += value * value;
  }
  for (int width = 4; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) {
      lanes[lane] += lanes[lane + width];
    }
  }
  return lanes[0];
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float float_of(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

std::uint16_t bf16_bits(float value) {
  const std::uint32_t bits = bits_of(value);
  if (value != value) {
    return static_cast<std::uint16_t>((bits >> 16) | 0x40U);  // a NaN stays one
  }
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// F. Giesen's float_to_half_fast3_rtne: the adder of the processor rounds subnormals.
std::uint16_t fp16_bits(float value) {
  std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = bits & 0x80000000U;
  bits ^= sign;
  std::uint32_t half = 0;
  if (bits >= 0x47800000U) {  // 65536 and above, infinity, NaN
    half = bits > 0x7f800000U ? 0x7e00U : 0x7c00U;
  } else if (bits < 0x38800000U) {  // below 2^-14
    half = bits_of(float_of(bits) + 0.5F) - bits_of(0.5F);
  } else {
    const std::uint32_t odd = (bits >> 13) & 1U;
    half = (bits + 0xc8000fffU + odd) >> 13;  // exponent bias 127 -> 15, and round
  }
  return static_cast<std::uint16_t>(half | (sign >> 16));
}

float from_fp16_bits(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= 0x7c00U) {
    return float_of(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13);
  }
  // 2^112 moves the exponent, subnormals included.
  return float_of(bits_of(float_of(magnitude << 13) * 5192296858534827628530496329220096.0F) |
                  sign);
}

template <typename T>
void to_bf16(const T* x, T factor, Bf16* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    y[i].bits = bf16_bits(static_cast<float>(x[i] * factor));
  }
}

template <typename T>
void from_bf16(const Bf16* x, T factor, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<T>(float_of(static_cast<std::uint32_t>(x[i].bits) << 16)) * factor;
  }
}

template <typename T>
void to_fp16(const T* x, T factor, Fp16* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    y[i].bits = fp16_bits(static_cast<float>(x[i] * factor));
  }
}

template <typename T>
void from_fp16(const Fp16* x, T factor, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<T>(from_fp16_bits(x[i].bits)) * factor;
  }
}

template <typename T>
void to_float(const T* x, double factor, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<float>(static_cast<double>(x[i]) * factor);
  }
}

template <typename T>
void to_double(const T* x, double factor, double* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<double>(x[i]) * factor;
  }
}

}  // namespace

template <typename T>
struct Implementation<Elementwise<T>> {
  static constexpr Elementwise<T> table() {
    return {.add = add<T>,
            .scale = scale<T>,
            .add_scaled = add_scaled<T>,
            .add_bias = add_bias<T>,
            .bias_grad = bias_grad<T>,
            .unscale_and_check = unscale_and_check<T>,
            .sum_squares = sum_squares<T>,
            .to_bf16 = to_bf16<T>,
            .from_bf16 = from_bf16<T>,
            .to_fp16 = to_fp16<T>,
            .from_fp16 = from_fp16<T>,
            .to_float = to_float<T>,
            .to_double = to_double<T>};
  }
};
template const Elementwise<float>& table();
template const Elementwise<double>& table();

}  // namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL
