// Token embedding over rows of a vocabulary that may be cut over ranks, learned positions, rotary
// positions.
#pragma once

#include <cstdint>

#include "kernels/cpu/norm.h"

namespace lockstep::kernels::cpu {

struct EmbeddingShape {
  std::int64_t m = 0;     ///< tokens
  std::int64_t rows = 0;  ///< rows of the weight here
  std::int64_t h = 0;
  std::int64_t first = 0;  ///< the vocabulary's row that row 0 is
};

struct PositionShape {
  std::int64_t m = 0;  ///< tokens here
  std::int64_t h = 0;
  std::int64_t seq = 0;          ///< token i of the batch has position i % seq
  std::int64_t first_token = 0;  ///< of the batch: where a shard begins
  std::int64_t rows = 0;         ///< rows of the weight, >= seq
};

/// cos and sin (seq, dim / 2) of the angles: rope_table fills them.
template <typename T>
struct RopeTable {
  const T* cosine = nullptr;
  const T* sine = nullptr;
};

struct RopeShape {
  std::int64_t m = 0;  ///< fused rows here
  std::int64_t seq = 0;
  std::int64_t first_token = 0;
  HeadShape heads;
};

template <typename T>
struct Embedding {
  /// y (m, h); zero for tokens outside [first, first + rows).
  void (*embedding)(const std::int64_t* tokens, const T* weight, T* y, EmbeddingShape shape);
  /// dweight (rows, h), from the first token to the last.
  void (*embedding_grad)(
      const T* dy, const std::int64_t* tokens, T* dweight, bool accumulate, EmbeddingShape shape);
  /// x += weight[position], in place.
  void (*position)(T* x, const T* weight, PositionShape shape);
  void (*position_grad)(const T* dy, T* dweight, bool accumulate, PositionShape shape);
  /// Hugging Face's rotate_half form on queries and keys of fused rows, in place: the first half of
  /// a head is turned with the second half.
  void (*rope)(T* x, RopeTable<T> table, RopeShape shape);
  /// The transpose: turns back.
  void (*rope_grad)(T* dx, RopeTable<T> table, RopeShape shape);
};

/// Angle of position p and pair i: p / scaling * theta^(-2i / dim).
struct RopeAngles {
  std::int64_t seq = 0;
  std::int64_t dim = 0;
  double theta = 10000;
  double scaling = 1;  ///< linear scaling of positions ("rope_scaling": linear); 1 = none
};
template <typename T>
void rope_table(const RopeAngles& angles, T* cosine, T* sine);

}  // namespace lockstep::kernels::cpu
