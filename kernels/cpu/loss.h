// Cross-entropy over a vocabulary that may be cut over ranks, in three parts between which the
// caller reduces one number per row (maximum, then two sums): loss = log(sum) + maximum - target.
//
// Columns [first, first + local) of the padded vocabulary lie here. Columns from `valid` on are
// padding: they act as minus infinity and get zero gradient. A label below 0 (PyTorch's
// ignore_index is -100) makes its row count for nothing.
#pragma once

#include <cstdint>

namespace lockstep::kernels::cpu {

struct LossShape {
  std::int64_t m = 0;      ///< rows
  std::int64_t local = 0;  ///< columns here
  std::int64_t first = 0;  ///< this rank's first column in the padded vocabulary
  std::int64_t valid = 0;  ///< the vocabulary without padding

  /// Columns here that are not padding.
  constexpr std::int64_t valid_here() const {
    const std::int64_t rest = valid > first ? valid - first : 0;
    return rest < local ? rest : local;
  }
};

template <typename T>
struct LossRows {
  const T* maximum = nullptr;  ///< over the whole vocabulary
  const T* sum = nullptr;      ///< of exp(logit - maximum), likewise
  const T* target = nullptr;   ///< the label's logit
};

struct LossFactors {
  double loss = 1;      ///< of the rows' losses, for example scalar / tokens
  double gradient = 1;  ///< the same times the loss scale
  bool accumulate = false;
};

template <typename T>
struct Loss {
  /// maximum[row] over the valid columns here; minus infinity where there is none.
  void (*local_max)(const T* logits, T* maximum, LossShape shape);
  /// sum[row] of exp(logit - maximum) here; target[row] the label's logit, 0 where it is elsewhere.
  void (*local_sums)(const T* logits,
                     const T* maximum,
                     const std::int64_t* labels,
                     T* sum,
                     T* target,
                     LossShape shape);
  /// loss[0] = factor * sum of the rows' losses (or += it); where dlogits is not null it becomes
  /// (softmax - one-hot) * gradient factor and may be logits itself.
  void (*finish)(const T* logits,
                 LossRows<T> rows,
                 const std::int64_t* labels,
                 LossFactors factors,
                 T* loss,
                 T* dlogits,
                 LossShape shape);
};

/// Labels that are not below 0.
std::int64_t count_labels(const std::int64_t* labels, std::int64_t n);

}  // namespace lockstep::kernels::cpu
