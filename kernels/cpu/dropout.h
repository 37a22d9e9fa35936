// Dropout from a counter: whether an element is kept depends on the key and on its index in the
// whole tensor, wherever its shard lies (cpu/random.h).
#pragma once

#include <cstdint>

#include "kernels/cpu/random.h"

namespace lockstep::kernels::cpu {

/// A box of a global matrix with rows of `global_columns`: what this rank holds.
struct DropoutBox {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t global_columns = 0;
  std::int64_t first_row = 0;
  std::int64_t first_column = 0;
};

template <typename T>
struct Dropout {
  /// mask is 1 where the element is kept; y = x / (1 - probability) there and 0 elsewhere. x, y and
  /// mask are (rows, columns), dense; y may be x.
  void (*dropout)(const T* x,
                  double probability,
                  const RandomKey& key,
                  T* y,
                  std::uint8_t* mask,
                  const DropoutBox& box);
  /// dx = dy / (1 - probability) where mask is 1; dx may be dy.
  void (*dropout_grad)(
      const T* dy, const std::uint8_t* mask, double probability, T* dx, std::int64_t n);
};

}  // namespace lockstep::kernels::cpu
