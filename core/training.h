// TrainingSpec: how it is trained: batch, precision, optimizer, recomputation, clipping.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/dtype.h"
#include "core/problems.h"

namespace lockstep {

/// kFp64, kFp32, kTf32: parameters, gradients and states in that storage (tf32 stores fp32).
/// kBf16, kFp16: 16-bit compute parameters with fp32 master weights in the optimizer.
/// kAutocast: fp32 parameters, bf16 matrix products on weight casts cached during forward.
enum class Precision : std::uint8_t { kFp64, kFp32, kTf32, kBf16, kFp16, kAutocast };
enum class OptimizerKind : std::uint8_t { kSgd, kMomentum, kAdamW, kAdamW8bit };
enum class OptimizerStateCreation : std::uint8_t { kLazy, kEager };
enum class Recompute : std::uint8_t { kNone, kSelective, kFull };
enum class AttentionKind : std::uint8_t { kPlain, kFlash };
/// How the loss of several ranks and micro-batches becomes one number (semantics: three "means").
enum class LossMean : std::uint8_t { kMeanOfMeans, kGlobalTokens };

/// A parameter that takes no part in the loss on some ranks and iterations (lesson material).
struct UnusedParameters {
  std::int64_t layer = 0;
  std::vector<std::int64_t> ranks;       ///< data-parallel coordinates; empty = all
  std::vector<std::int64_t> iterations;  ///< empty = all
};

struct TrainingSpec {
  std::int64_t seq_len = 0;      ///< [s]; 0 = the model's max_position
  std::int64_t micro_batch = 1;  ///< [b] samples per rank and micro-batch
  std::int64_t accumulate = 1;   ///< [M] micro-batches per step and data-parallel rank
  std::int64_t global_batch =
      0;  ///< samples per step over all ranks; 0 = micro_batch*accumulate*dp
  Precision precision = Precision::kBf16;
  std::optional<DType> gradient_dtype;  ///< default: parameter dtype (fp32 for Megatron flavour)
  std::optional<DType> reduce_dtype;    ///< default: gradient dtype (fp32 for FSDP with bf16)
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  OptimizerStateCreation optimizer_state = OptimizerStateCreation::kLazy;
  double learning_rate = 3e-4;
  std::int64_t warmup_steps = 0;     ///< the rate rises linearly over the first steps
  double final_learning_rate = 0.1;  ///< of learning_rate, at the run's end (cosine); 1 = constant
  double weight_decay = 0.1;         ///< decoupled; not on vectors (norm weights, biases)
  double momentum = 0.9;             ///< of OptimizerKind::kMomentum
  double beta1 = 0.9;                ///< AdamW
  double beta2 = 0.95;
  double epsilon = 1e-8;
  Recompute recompute = Recompute::kNone;
  std::int64_t recompute_every = 1;  ///< with kFull: recompute every k-th layer
  AttentionKind attention = AttentionKind::kFlash;
  double dropout = 0.0;
  double clip_norm = 1.0;            ///< 0 = no clipping
  std::optional<bool> loss_scaling;  ///< default: only for fp16
  LossMean loss_mean = LossMean::kMeanOfMeans;
  std::vector<UnusedParameters> unused;
  std::int64_t seed = 1234;

  bool scales_loss() const { return loss_scaling.value_or(precision == Precision::kFp16); }
  /// Storage of the parameters that forward and backward read.
  DType parameter_dtype() const;
  /// Storage of activations.
  DType activation_dtype() const;
  /// True where the optimizer keeps its own fp32 copy of the parameters.
  bool has_master_weights() const {
    return precision == Precision::kBf16 || precision == Precision::kFp16;
  }
};

/// All problems of the training section by itself, with key paths below "training".
void validate(const TrainingSpec& training, Problems& problems);

}  // namespace lockstep
