// Causal self-attention on fused rows of queries, keys and values, with grouped keys, in two forms.
//
// Plain attention stores the probabilities (batch, heads, seq, seq), and with dropout the mask and
// the dropped probabilities. Flash attention (Dao et al. 2022, arXiv:2205.14135) goes through them
// in tiles, keeps one log-sum-exp (batch, heads, seq) per query and computes them again in
// backward; tiles above the diagonal are skipped. A sequence's result does not depend on its place
// in the batch, nor a head's on the other heads here. qkv is (batch * seq, HeadShape::width()), y
// is (batch * seq, query_width()). Workspaces are the caller's, so that they are counted.
#pragma once

#include <cstdint>

#include "kernels/cpu/norm.h"
#include "kernels/cpu/random.h"

namespace lockstep::kernels::cpu {

struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  HeadShape heads;          ///< on this rank
  std::int64_t window = 0;  ///< a query sees that many keys, itself included; 0 = all before it
};

template <typename T>
struct FlashSaved {
  const T* qkv = nullptr;
  const T* y = nullptr;
  const T* log_sum_exp = nullptr;
};

/// Elements of the workspace of flash and flash_grad.
std::int64_t flash_workspace(const AttentionShape& shape);

template <typename T>
struct Attention {
  void (*flash)(const T* qkv, T* y, T* log_sum_exp, T* workspace, const AttentionShape& shape);
  void (*flash_grad)(
      const T* dy, FlashSaved<T> saved, T* dqkv, T* workspace, const AttentionShape& shape);
  /// In place on (seq, seq) scores of one head: softmax of scale * scores over the visible keys, 0
  /// elsewhere.
  void (*softmax)(T* scores, T scale, std::int64_t seq, std::int64_t window);
  /// In place on the gradient of one head's probabilities: gradient of its scores.
  void (*softmax_grad)(const T* probabilities, T* gradient, T scale, std::int64_t seq);
};

struct AttentionDropout {
  double probability = 0;
  RandomKey key;
  std::int64_t global_heads = 0;  ///< over all ranks: masks go by the head's global number
  std::int64_t first_head = 0;    ///< this rank's first
};

/// What plain attention stores. mask and dropped are null without dropout.
template <typename T>
struct AttentionSaved {
  T* probabilities = nullptr;
  std::uint8_t* mask = nullptr;
  T* dropped = nullptr;
};

template <typename T>
void attention(const T* qkv,
               T* y,
               const AttentionSaved<T>& saved,
               const AttentionDropout& dropout,
               const AttentionShape& shape);

/// `workspace` has seq * seq elements.
template <typename T>
struct AttentionGradient {
  const T* dy = nullptr;
  T* dqkv = nullptr;
  T* workspace = nullptr;
};

template <typename T>
void attention_grad(const T* qkv,
                    const AttentionSaved<T>& saved,
                    const AttentionGradient<T>& gradient,
                    const AttentionDropout& dropout,
                    const AttentionShape& shape);

}  // namespace lockstep::kernels::cpu
