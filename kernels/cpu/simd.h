// Vectors of the processor's own width, for source files that are built once per instruction set.
//
// Vec<T>::Type is a GNU vector (g++ and clang, any processor). Elementwise kernels treat a tail as
// a vector with zeros behind it, so that an element's result does not depend on where a shard
// begins or ends. Reductions run over a fixed number of lanes (Sum, Maximum), so that they do not
// depend on the width either. Included only by files of the per-level libraries of CMakeLists.txt.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/dispatch.h"

#ifndef LOCKSTEP_LEVEL
#error "build this file by the per-level libraries of kernels/CMakeLists.txt"
#endif

// A namespace per level: the linker must never take one level's inline function for another's.
namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <typename T>
struct Vec;
template <>
struct Vec<float> {
  using Type = float __attribute__((vector_size(kVectorBytes)));
  using Int = std::int32_t __attribute__((vector_size(kVectorBytes)));
};
template <>
struct Vec<double> {
  using Type = double __attribute__((vector_size(kVectorBytes)));
  using Int = std::int64_t __attribute__((vector_size(kVectorBytes)));
};
template <typename T>
using V = typename Vec<T>::Type;

template <typename T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
/// Lanes of a reduction: 64 bytes, whatever the level.
template <typename T>
inline constexpr int kSumLanes = 64 / static_cast<int>(sizeof(T));
template <typename T>
inline constexpr int kParts = kSumLanes<T> / kLanes<T>;

template <typename T>
inline V<T> broadcast(T value) {
  return value - V<T>{};  // folded away; 0 + value is not, for it turns -0 into 0
}

template <typename T>
inline V<T> load(const T* from) {
  V<T> vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

template <typename T>
inline void store(T* to, V<T> vector) {
  std::memcpy(to, &vector, sizeof(vector));
}

/// The first `count` lanes from memory, `fill` behind them.
template <typename T>
inline V<T> load_some(const T* from, std::int64_t count, T fill = T(0)) {
  T lanes[kLanes<T>];
  for (int i = 0; i < kLanes<T>; ++i) {
    lanes[i] = i < count ? from[i] : fill;
  }
  return load(lanes);
}

template <typename T>
inline void store_some(T* to, V<T> vector, std::int64_t count) {
  T lanes[kLanes<T>];
  store(lanes, vector);
  for (int i = 0; i < kLanes<T> && i < count; ++i) {
    to[i] = lanes[i];
  }
}

/// Calls body(i, load, store) for every vector of [0, n); the last one may be short.
template <typename T, typename Body>
inline void for_each_vector(std::int64_t n, Body body) {
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    body([i](const T* from) { return load(from + i); },
         [i](T* to, V<T> vector) { store(to + i, vector); });
  }
  if (i < n) {
    body([i, n](const T* from) { return load_some(from + i, n - i); },
         [i, n](T* to, V<T> vector) { store_some(to + i, vector, n - i); });
  }
}

template <typename T>
inline V<T> maximum(V<T> a, V<T> b) {
  return a > b ? a : b;
}

/// e^x within 2 ulp of the exact value where that is a normal number; 0 below; infinity above.
/// Cephes' expf (S. L. Moshier): x = n ln 2 + r with ln 2 in two parts, polynomial in r, times 2^n.
inline V<float> exponential(V<float> x) {
  using Int = Vec<float>::Int;
  const V<float> low = broadcast(-87.336544F);
  const V<float> high = broadcast(88.722839F);
  const V<float> inside = x < low ? low : (x > high ? high : x);
  const float round_to_integer = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const V<float> shifted = inside * 1.44269504F + round_to_integer;
  const V<float> n = shifted - round_to_integer;
  const V<float> r = (inside - n * 0.693359375F) - n * -2.12194440e-4F;
  V<float> p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = (p * (r * r) + r) + 1.0F;
  // 2^n in two factors, because n may be 128 where the result still is finite.
  Int exponent;
  std::memcpy(&exponent, &shifted, sizeof(exponent));
  exponent -= 0x4b400000;
  const Int half = exponent >> 1;
  const Int first = (half + 127) << 23;
  const Int second = (exponent - half + 127) << 23;
  V<float> scale_first;
  V<float> scale_second;
  std::memcpy(&scale_first, &first, sizeof(first));
  std::memcpy(&scale_second, &second, sizeof(second));
  const V<float> result = p * scale_first * scale_second;
  const V<float> bounded = x < low ? V<float>{} : (x > high ? broadcast(__builtin_inff()) : result);
  return x == x ? bounded : x;  // NaN stays NaN
}

inline V<double> exponential(V<double> x) {
  V<double> result = x;
  for (int i = 0; i < kLanes<double>; ++i) {
    result[i] = __builtin_exp(x[i]);
  }
  return result;
}

template <typename T>
inline V<T> square_root(V<T> x) {
  T lanes[kLanes<T>];
  store(lanes, x);
  for (int i = 0; i < kLanes<T>; ++i) {
    lanes[i] = std::sqrt(lanes[i]);
  }
  return load(lanes);
}

template <typename T>
inline V<T> absolute(V<T> x) {
  return x < T(0) ? -x : x;
}

/// Folds body(i, count) over the vectors of [0, n) into kSumLanes lanes, then the lanes into one
/// number in a fixed order: the same bits at every level and for any alignment. `count` is the
/// number of elements that the vector holds (the body fills the rest with `neutral`).
template <typename T, typename Combine, typename Body>
inline T reduce(std::int64_t n, T neutral, Combine combine, Body body) {
  V<T> lanes[kParts<T>];
  for (int part = 0; part < kParts<T>; ++part) {
    lanes[part] = broadcast(neutral);
  }
  std::int64_t i = 0;
  for (; i + kSumLanes<T> <= n; i += kSumLanes<T>) {
    for (int part = 0; part < kParts<T>; ++part) {
      const std::int64_t at = i + part * kLanes<T>;
      lanes[part] = combine(lanes[part], body([at](const T* from) { return load(from + at); }));
    }
  }
  for (int part = 0; i < n; ++part, i += kLanes<T>) {
    const std::int64_t count = n - i;
    // Lanes behind the end must not count: they are set back to the neutral element.
    const V<T> value = body([i, count](const T* from) { return load_some(from + i, count); });
    T some[kLanes<T>];
    store(some, value);
    lanes[part] = combine(lanes[part], load_some(some, count, neutral));
  }
  T all[kSumLanes<T>];
  for (int part = 0; part < kParts<T>; ++part) {
    store(all + part * kLanes<T>, lanes[part]);
  }
  for (int width = kSumLanes<T> / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) {
      all[lane] = combine(all[lane], all[lane + width]);
    }
  }
  return all[0];
}

struct Add {
  template <typename A>
  A operator()(A a, A b) const {
    return a + b;
  }
};

template <typename T, typename Body>
inline T sum(std::int64_t n, Body body) {
  return reduce(n, T(0), Add{}, body);
}

/// Specialised by each group: static constexpr Group table().
template <typename Group>
struct Implementation;

/// Explicitly instantiated beside each Implementation; what dispatch.cpp calls.
template <typename Group>
const Group& table() {
  static constexpr Group kTable = Implementation<Group>::table();
  return kTable;
}

}  // namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL
