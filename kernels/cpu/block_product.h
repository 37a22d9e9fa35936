// A small matrix product for tiles that lie in the first-level cache: c (rows, n) (+)= a b, where
// element (i, p) of a is a[i * row + p * column], so that a may be transposed, and b and c are
// row-major. Every element of c is one chain of additions over p = 0, 1, ..., whatever the tile.
//
// kRows x kColumns vectors of c stay in registers: 12 accumulators of 16 registers, or 24 of 32.
// Files that include it are compiled with fused multiply-add (kernels/CMakeLists.txt).
#pragma once

#include "kernels/cpu/simd.h"

namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL {

template <typename T>
struct Strided {
  const T* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 0;
};

template <typename T>
struct Block {
  T* data = nullptr;
  std::int64_t ld = 0;
};

struct BlockShape {
  std::int64_t rows = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

inline constexpr int kTileRows = 6;
inline constexpr int kTileColumns = kVectorBytes == 64 ? 4 : 2;
inline constexpr int kMostInner = 64;  ///< largest k where n is not a multiple of the lanes

template <typename T, int kRows, int kColumns>
inline void register_tile(
    Strided<T> a, Block<const T> b, Block<T> c, std::int64_t k, bool accumulate) {
  V<T> sums[kRows][kColumns];
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kColumns; ++j) {
      sums[r][j] = accumulate ? load(c.data + r * c.ld + j * kLanes<T>) : V<T>{};
    }
  }
  for (std::int64_t p = 0; p < k; ++p) {
    V<T> row[kColumns];
    for (int j = 0; j < kColumns; ++j) {
      row[j] = load(b.data + p * b.ld + j * kLanes<T>);
    }
    for (int r = 0; r < kRows; ++r) {
      const V<T> factor = broadcast(a.data[r * a.row + p * a.column]);
      for (int j = 0; j < kColumns; ++j) {
        sums[r][j] += factor * row[j];
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kColumns; ++j) {
      store(c.data + r * c.ld + j * kLanes<T>, sums[r][j]);
    }
  }
}

/// All rows of kColumns vectors of c. kRows counts down to what is left. Not inlined: among its
/// callers' variables g++ runs out of registers and keeps accumulators in memory.
template <typename T, int kRows, int kColumns>
[[gnu::noinline]] void column_strip(
    Strided<T> a, Block<const T> b, Block<T> c, const BlockShape& shape, bool accumulate) {
  std::int64_t row = 0;
  for (; row + kRows <= shape.rows; row += kRows) {
    register_tile<T, kRows, kColumns>({a.data + row * a.row, a.row, a.column},
                                      b,
                                      {c.data + row * c.ld, c.ld},
                                      shape.k,
                                      accumulate);
  }
  if constexpr (kRows > 1) {
    if (row < shape.rows) {
      column_strip<T, kRows / 2, kColumns>({a.data + row * a.row, a.row, a.column},
                                           b,
                                           {c.data + row * c.ld, c.ld},
                                           {shape.rows - row, shape.n, shape.k},
                                           accumulate);
    }
  }
}

/// The columns behind the last whole vector, through padded copies.
template <typename T>
inline void last_columns(
    Strided<T> a, Block<const T> b, Block<T> c, const BlockShape& shape, bool accumulate) {
  T padded[kMostInner * kLanes<T>];
  T result[kTileRows * kLanes<T>];
  for (std::int64_t p = 0; p < shape.k; ++p) {
    store(padded + p * kLanes<T>, load_some(b.data + p * b.ld, shape.n));
  }
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    T* to = c.data + row * c.ld;
    store(result, accumulate ? load_some(to, shape.n) : V<T>{});
    register_tile<T, 1, 1>({a.data + row * a.row, a.row, a.column},
                           {padded, kLanes<T>},
                           {result, kLanes<T>},
                           shape.k,
                           true);
    store_some(to, load(result), shape.n);
  }
}

/// c = a b, or c += a b. Where n is not a multiple of the lanes, k is at most kMostInner.
template <typename T>
inline void block_product(
    Strided<T> a, Block<const T> b, Block<T> c, const BlockShape& shape, bool accumulate) {
  constexpr std::int64_t kWide = kTileColumns * kLanes<T>;
  std::int64_t j = 0;
  for (; j + kWide <= shape.n; j += kWide) {
    column_strip<T, kTileRows, kTileColumns>(
        a, {b.data + j, b.ld}, {c.data + j, c.ld}, shape, accumulate);
  }
  for (; j + kLanes<T> <= shape.n; j += kLanes<T>) {
    column_strip<T, kTileRows, 1>(a, {b.data + j, b.ld}, {c.data + j, c.ld}, shape, accumulate);
  }
  if (j < shape.n) {
    last_columns(a,
                 {b.data + j, b.ld},
                 {c.data + j, c.ld},
                 BlockShape{shape.rows, shape.n - j, shape.k},
                 accumulate);
  }
}

}  // namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL
