#include "kernels/cpu/dropout.h"

#include "kernels/cpu/simd.h"

namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL {
namespace {

/// Blocks drawn at a time: independent, so that the compiler may take them in vectors.
constexpr int kBlocks = 16;

/// Words of the 4 kBlocks elements from element 4 `block` on.
void draw(const RandomKey& key, std::uint64_t block, std::uint32_t* words) {
  for (int i = 0; i < kBlocks; ++i) {
    const RandomBlock drawn = random_block(key, block + static_cast<std::uint64_t>(i));
    for (int word = 0; word < 4; ++word) {
      words[4 * i + word] = drawn.word[word];
    }
  }
}

template <typename T>
void dropout(const T* x,
             double probability,
             const RandomKey& key,
             T* y,
             std::uint8_t* mask,
             const DropoutBox& box) {
  const auto threshold = static_cast<std::uint64_t>(probability * 4294967296.0);
  const auto factor = static_cast<T>(1 / (1 - probability));
  std::uint32_t words[4 * kBlocks];
  for (std::int64_t row = 0; row < box.rows; ++row) {
    const std::int64_t local = row * box.columns;
    const std::int64_t start = (box.first_row + row) * box.global_columns + box.first_column;
    std::int64_t column = 0;
    while (column < box.columns) {
      const std::int64_t index = start + column;
      draw(key, static_cast<std::uint64_t>(index / 4), words);
      const std::int64_t skip = index % 4;
      const std::int64_t drawn = std::int64_t{4} * kBlocks - skip;
      const std::int64_t rest = box.columns - column;
      const std::int64_t count = drawn < rest ? drawn : rest;
      for (std::int64_t i = 0; i < count; ++i) {
        const bool keep = words[skip + i] >= threshold;
        mask[local + column + i] = keep ? 1 : 0;
        y[local + column + i] = keep ? x[local + column + i] * factor : T(0);
      }
      column += count;
    }
  }
}

template <typename T>
void dropout_grad(
    const T* dy, const std::uint8_t* mask, double probability, T* dx, std::int64_t n) {
  const auto factor = static_cast<T>(1 / (1 - probability));
  for (std::int64_t i = 0; i < n; ++i) {
    dx[i] = mask[i] != 0 ? dy[i] * factor : T(0);
  }
}

}  // namespace

template <typename T>
struct Implementation<Dropout<T>> {
  static constexpr Dropout<T> table() {
    return {.dropout = dropout<T>, .dropout_grad = dropout_grad<T>};
  }
};
template const Dropout<float>& table();
template const Dropout<double>& table();

}  // namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL
