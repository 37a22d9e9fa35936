#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/gemm.h"

namespace lockstep::kernels::cpu {

std::int64_t flash_workspace(const AttentionShape& shape) {
  // Three transposed tiles of 64 queries, two tiles of 64 x 64, four numbers per query.
  constexpr std::int64_t kTile = 64;
  return kTile * (3 * shape.heads.dim + 2 * kTile + 4);
}

namespace {

/// Where one head of one sequence lies in fused rows.
struct Head {
  std::int64_t query = 0;
  std::int64_t key = 0;
  std::int64_t value = 0;
  std::int64_t output = 0;
  std::int64_t scores = 0;
};

Head head_of(const AttentionShape& shape, std::int64_t sequence, std::int64_t head) {
  const HeadShape& heads = shape.heads;
  const std::int64_t row = sequence * shape.seq;
  const std::int64_t group = head / (heads.heads / heads.kv_heads);
  Head place;
  place.query = row * heads.width() + head * heads.dim;
  place.key = row * heads.width() + heads.query_width() + group * heads.dim;
  place.value = place.key + heads.kv_width();
  place.output = row * heads.query_width() + head * heads.dim;
  place.scores = (sequence * heads.heads + head) * shape.seq * shape.seq;
  return place;
}

template <typename T>
T scale_of(const AttentionShape& shape) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(shape.heads.dim)));
}

/// c (seq, columns) = a b with the given operands; the three strides are leading dimensions.
template <typename T>
GemmArguments<T> product(const AttentionShape& shape, std::int64_t n, std::int64_t k) {
  GemmArguments<T> g;
  g.m = shape.seq;
  g.n = n;
  g.k = k;
  return g;
}

/// Scores, or the gradient of probabilities: (seq, seq) = a b^T over the head's dimension.
template <typename T>
void against_keys(const T* a, std::int64_t lda, const T* b, T* c, const AttentionShape& shape) {
  GemmArguments<T> g = product<T>(shape, shape.seq, shape.heads.dim);
  g.a = a;
  g.lda = lda;
  g.b = b;
  g.ldb = shape.heads.width();
  g.transpose_b = true;
  g.c = c;
  g.ldc = shape.seq;
  gemm(g);
}

/// A (seq, seq) matrix or its transpose times (seq, dim).
template <typename T>
struct Mix {
  const T* matrix = nullptr;
  bool transpose = false;
  const T* rows = nullptr;
  std::int64_t ld = 0;
  T* out = nullptr;
  std::int64_t ldo = 0;
  bool accumulate = false;
};

template <typename T>
void mix(const Mix<T>& parts, const AttentionShape& shape) {
  GemmArguments<T> g = product<T>(shape, shape.heads.dim, shape.seq);
  g.a = parts.matrix;
  g.lda = shape.seq;
  g.transpose_a = parts.transpose;
  g.b = parts.rows;
  g.ldb = parts.ld;
  g.c = parts.out;
  g.ldc = parts.ldo;
  g.accumulate = parts.accumulate;
  gemm(g);
}

/// Rows of one sequence's probabilities in the (batch * global heads * seq, seq) matrix.
DropoutBox box_of(const AttentionShape& shape, const AttentionDropout& dropout, std::int64_t b) {
  return {.rows = shape.heads.heads * shape.seq,
          .columns = shape.seq,
          .global_columns = shape.seq,
          .first_row = (b * dropout.global_heads + dropout.first_head) * shape.seq,
          .first_column = 0};
}

}  // namespace

template <typename T>
void attention(const T* qkv,
               T* y,
               const AttentionSaved<T>& saved,
               const AttentionDropout& dropout,
               const AttentionShape& shape) {
  const Attention<T>& kernels = best<Attention<T>>();
  const bool drops = saved.mask != nullptr;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.heads.heads; ++h) {
      const Head at = head_of(shape, b, h);
      T* probabilities = saved.probabilities + at.scores;
      against_keys(qkv + at.query, shape.heads.width(), qkv + at.key, probabilities, shape);
      kernels.softmax(probabilities, scale_of<T>(shape), shape.seq, shape.window);
    }
    if (drops) {
      const std::int64_t at = head_of(shape, b, 0).scores;
      best<Dropout<T>>().dropout(saved.probabilities + at,
                                 dropout.probability,
                                 dropout.key,
                                 saved.dropped + at,
                                 saved.mask + at,
                                 box_of(shape, dropout, b));
    }
    for (std::int64_t h = 0; h < shape.heads.heads; ++h) {
      const Head at = head_of(shape, b, h);
      mix<T>({.matrix = (drops ? saved.dropped : saved.probabilities) + at.scores,
              .rows = qkv + at.value,
              .ld = shape.heads.width(),
              .out = y + at.output,
              .ldo = shape.heads.query_width()},
             shape);
    }
  }
}

template <typename T>
void attention_grad(const T* qkv,
                    const AttentionSaved<T>& saved,
                    const AttentionGradient<T>& gradient,
                    const AttentionDropout& dropout,
                    const AttentionShape& shape) {
  const std::int64_t ld = shape.heads.width();
  const std::int64_t per_group = shape.heads.heads / shape.heads.kv_heads;
  const bool drops = saved.mask != nullptr;
  T* work = gradient.workspace;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.heads.heads; ++h) {
      const Head at = head_of(shape, b, h);
      const T* dy = gradient.dy + at.output;
      const std::int64_t ldy = shape.heads.query_width();
      const bool later = h % per_group != 0;  // the group's keys have a gradient already
      mix<T>({(drops ? saved.dropped : saved.probabilities) + at.scores,
              true,
              dy,
              ldy,
              gradient.dqkv + at.value,
              ld,
              later},
             shape);
      against_keys(dy, ldy, qkv + at.value, work, shape);
      if (drops) {
        best<Dropout<T>>().dropout_grad(
            work, saved.mask + at.scores, dropout.probability, work, shape.seq * shape.seq);
      }
      best<Attention<T>>().softmax_grad(
          saved.probabilities + at.scores, work, scale_of<T>(shape), shape.seq);
      mix<T>({work, false, qkv + at.key, ld, gradient.dqkv + at.query, ld, false}, shape);
      mix<T>({work, true, qkv + at.query, ld, gradient.dqkv + at.key, ld, later}, shape);
    }
  }
}

template void attention(const float*,
                        float*,
                        const AttentionSaved<float>&,
                        const AttentionDropout&,
                        const AttentionShape&);
template void attention(const double*,
                        double*,
                        const AttentionSaved<double>&,
                        const AttentionDropout&,
                        const AttentionShape&);
template void attention_grad(const float*,
                             const AttentionSaved<float>&,
                             const AttentionGradient<float>&,
                             const AttentionDropout&,
                             const AttentionShape&);
template void attention_grad(const double*,
                             const AttentionSaved<double>&,
                             const AttentionGradient<double>&,
                             const AttentionDropout&,
                             const AttentionShape&);

}  // namespace lockstep::kernels::cpu
