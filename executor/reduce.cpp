#include "executor/reduce.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/check.h"

namespace lockstep::exec {

float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  // To even: half of the last place, less one where the last place is even.
  const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
  return static_cast<std::uint16_t>(nan ? (bits >> 16 | 0x40U) : rounded);
}

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1fU;
  const std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0x1f) {
    return std::bit_cast<float>(sign | 0x7f800000U | mantissa << 13);
  }
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in fp32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    return static_cast<std::uint16_t>(sign | 0x7e00U);
  }
  if (magnitude >= 0x477ff000U) {  // 65520 and more round to infinity
    return static_cast<std::uint16_t>(sign | 0x7c00U);
  }
  if (magnitude < 0x38800000U) {  // below 2^-14: adding 0.5 lets the FPU round at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13 & 1U);
  return static_cast<std::uint16_t>(sign | (rounded - 0x38000000U) >> 13);
}

namespace {

struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};

// What a stored type is added as. Integers are added as unsigned, where overflow wraps.
template <typename Stored>
struct Wide {
  using Type = Stored;
};
template <>
struct Wide<Bf16> {
  using Type = float;
};
template <>
struct Wide<Fp16> {
  using Type = float;
};

template <typename T>
T widen(T value) {
  return value;
}
float widen(Bf16 value) {
  return bfloat16_to_float(value.bits);
}
float widen(Fp16 value) {
  return half_to_float(value.bits);
}
template <typename Stored, typename T>
Stored narrow(T value) {
  if constexpr (std::is_same_v<Stored, Bf16>) {
    return {float_to_bfloat16(value)};
  } else if constexpr (std::is_same_v<Stored, Fp16>) {
    return {float_to_half(value)};
  } else {
    return value;
  }
}

template <typename T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return a + b;
  }
}

template <typename T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a >= b || a != a ? a : b;
  } else {
    return a >= b ? a : b;
  }
}

// Blocks are small enough for the first level cache. All loops below run over a local array, so the
// compiler sees that they alias nothing and vectorises them.
constexpr std::int64_t kBlock = 1024;

template <typename Stored>
struct Block {
  using T = typename Wide<Stored>::Type;
  T value[kBlock];

  void load(const Stored* from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      value[i] = widen(from[i]);
    }
  }
  void load(const Stored* from, double factor, std::int64_t count) {
    load(from, count);
    const auto times = static_cast<T>(factor);
    for (std::int64_t i = 0; factor != 1 && i < count; ++i) {
      value[i] = static_cast<T>(value[i] * times);
    }
  }
  void add(const Stored* from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      value[i] = plus(value[i], widen(from[i]));
    }
  }
  void add(const Stored* from, double factor, std::int64_t count) {
    if (factor == 1) {
      return add(from, count);
    }
    const auto times = static_cast<T>(factor);
    for (std::int64_t i = 0; i < count; ++i) {
      value[i] = plus(value[i], static_cast<T>(widen(from[i]) * times));
    }
  }
  void maximum(const Stored* from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      value[i] = larger(value[i], widen(from[i]));
    }
  }
  void divide(int by, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      value[i] = static_cast<T>(value[i] / static_cast<T>(by));
    }
  }
  void store(Stored* to, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = narrow<Stored>(value[i]);
    }
  }
};

template <typename Stored>
void reduce_typed(Reduction reduction,
                  double factor,
                  Stored* to,
                  std::span<const void* const> from,
                  std::int64_t elements) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): load() fills what is read
  Block<Stored> block;
  for (std::int64_t begin = 0; begin < elements; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, elements - begin);
    block.load(static_cast<const Stored*>(from[0]) + begin, factor, count);
    for (std::size_t k = 1; k < from.size(); ++k) {
      const Stored* const next = static_cast<const Stored*>(from[k]) + begin;
      if (reduction == Reduction::kMax) {
        block.maximum(next, count);
      } else {
        block.add(next, factor, count);
      }
    }
    if (reduction == Reduction::kAverage && std::is_integral_v<Stored>) {
      block.divide(static_cast<int>(from.size()), count);
    }
    block.store(to + begin, count);
  }
}

template <typename Stored>
void pair_typed(
    Reduction reduction, Stored* to, const Term& a, const Term& b, std::int64_t elements) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): load() fills what is read
  Block<Stored> block;
  for (std::int64_t begin = 0; begin < elements; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, elements - begin);
    block.load(static_cast<const Stored*>(a.data) + begin, a.factor, count);
    const Stored* const next = static_cast<const Stored*>(b.data) + begin;
    if (reduction == Reduction::kMax) {
      block.maximum(next, count);
    } else {
      block.add(next, b.factor, count);
    }
    block.store(to + begin, count);
  }
}

/// Calls `call` with a value of the stored type.
template <typename Call>
void with_type(DType dtype, Call call) {
  switch (dtype) {
    case DType::kFp64:
      return call(double{});
    case DType::kFp32:
      return call(float{});
    case DType::kBf16:
      return call(Bf16{});
    case DType::kFp16:
      return call(Fp16{});
    case DType::kInt64:
      return call(std::int64_t{});
    case DType::kInt32:
      return call(std::int32_t{});
    case DType::kUint8:
      return call(std::uint8_t{});
  }
}

bool is_integer(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kUint8;
}

}  // namespace

double factor_of_terms(Reduction reduction, DType dtype, int members) {
  return reduction == Reduction::kAverage && !is_integer(dtype) ? 1.0 / members : 1.0;
}

void reduce_in_order(Reduction reduction,
                     DType dtype,
                     void* to,
                     std::span<const void* const> from,
                     std::int64_t elements) {
  LOCKSTEP_CHECK(reduction != Reduction::kNone && !from.empty(), "nothing to reduce by");
  const double factor = factor_of_terms(reduction, dtype, static_cast<int>(from.size()));
  with_type(dtype, [&](auto type) {
    reduce_typed(reduction, factor, static_cast<decltype(type)*>(to), from, elements);
  });
}

void reduce_pair(
    Reduction reduction, DType dtype, void* to, const Term& a, const Term& b, std::int64_t n) {
  LOCKSTEP_CHECK(reduction != Reduction::kNone, "nothing to reduce by");
  with_type(dtype,
            [&](auto type) { pair_typed(reduction, static_cast<decltype(type)*>(to), a, b, n); });
}

void finish_average(DType dtype, void* values, std::int64_t elements, int members) {
  if (!is_integer(dtype)) {
    return;
  }
  with_type(dtype, [&](auto type) {
    using Stored = decltype(type);
    auto* const all = static_cast<Stored*>(values);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): load() fills what is read
    Block<Stored> block;
    for (std::int64_t begin = 0; begin < elements; begin += kBlock) {
      const std::int64_t count = std::min(kBlock, elements - begin);
      block.load(all + begin, count);
      block.divide(members, count);
      block.store(all + begin, count);
    }
  });
}

}  // namespace lockstep::exec
