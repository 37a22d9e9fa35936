// Value field: the numbers of the value check, elements of the prime field of 2^61 - 1.
//
// Sums and scalings of a plan are exact here (1/N is the modular inverse), so every legal order of
// reductions and scalings gives the same number, and any other gives another one: two polynomials
// that differ agree at a random point with a probability of about degree / 2^61 (Schwartz 1980,
// Zippel 1979). Everything nonlinear is a hash, which stands for "some function".
#pragma once

#include <cstdint>
#include <numeric>

namespace lockstep::field {

using Number = std::uint64_t;

inline constexpr Number kPrime = (std::uint64_t{1} << 61U) - 1;

constexpr Number add(Number a, Number b) {
  const Number sum = a + b;
  return sum >= kPrime ? sum - kPrime : sum;
}

constexpr Number subtract(Number a, Number b) {
  return a >= b ? a - b : a + kPrime - b;
}

constexpr Number multiply(Number a, Number b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  // 2^61 = 1 in the field, so the high part is added to the low one.
  const auto low = static_cast<std::uint64_t>(product) & kPrime;
  const auto high = static_cast<std::uint64_t>(product >> 61U);
  return add(low, high);
}

constexpr Number power(Number base, std::uint64_t exponent) {
  Number result = 1;
  for (; exponent != 0; exponent >>= 1U) {
    if ((exponent & 1U) != 0) {
      result = multiply(result, base);
    }
    base = multiply(base, base);
  }
  return result;
}

/// 1 / a by Fermat's little theorem; 0 for 0.
constexpr Number inverse(Number a) {
  return power(a, kPrime - 2);
}

constexpr Number of_integer(std::int64_t n) {
  const auto magnitude = static_cast<std::uint64_t>(n < 0 ? -n : n) % kPrime;
  return n < 0 ? subtract(0, magnitude) : magnitude;
}

constexpr Number fraction(std::int64_t numerator, std::int64_t denominator) {
  if (numerator == 1 && denominator == 1) {
    return 1;
  }
  return multiply(of_integer(numerator), inverse(of_integer(denominator)));
}

/// Accumulates words; `number()` is their image in the field, never 0.
class Hash {
 public:
  constexpr explicit Hash(std::uint64_t seed) : state_(mix(seed + 0x9e3779b97f4a7c15ULL)) {}
  constexpr Hash& add(std::uint64_t word) {
    state_ = mix(state_ ^ (word * 0xff51afd7ed558ccdULL + 0x2545f4914f6cdd1dULL));
    return *this;
  }
  constexpr Number number() const { return state_ % (kPrime - 1) + 1; }

 private:
  /// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31U);
  }
  std::uint64_t state_;
};

/// The part [begin, end) of a sum over [0, whole): parts of any partition add up to 1, and no other
/// collection of parts does. Depends on the fractions begin / whole and end / whole only.
constexpr Number part(std::int64_t begin, std::int64_t end, std::int64_t whole) {
  const auto mark = [whole](std::int64_t x) -> Number {
    if (x <= 0 || x >= whole) {
      return x <= 0 ? 0 : 1;
    }
    const std::int64_t common = std::gcd(x, whole);
    return Hash(0x7061727473ULL)
        .add(static_cast<std::uint64_t>(x / common))
        .add(static_cast<std::uint64_t>(whole / common))
        .number();
  };
  return subtract(mark(end), mark(begin));
}

}  // namespace lockstep::field
