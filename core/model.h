// ModelSpec: what is trained. Plain data with defaults; constant after construction.
//
// A transformer (GPT-2, Llama, Mistral, Qwen2/3, Mixtral forms are all settings of the same fields)
// or a multi-layer perceptron for lessons and small real runs. The model graph (core/model_graph.h)
// turns it into modules, parameters and tensors. Hugging Face files are read by
// core/io/hf_config.h, presets are in core/model_presets.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/limits.h"
#include "core/problems.h"

namespace lockstep {

enum class ModelFamily : std::uint8_t { kTransformer, kMlp };
enum class NormKind : std::uint8_t { kLayerNorm, kRmsNorm };
enum class ActivationKind : std::uint8_t { kGelu, kRelu, kSwiGlu };
enum class PositionKind : std::uint8_t { kNone, kLearned, kRope };
enum class MlpNormKind : std::uint8_t { kNone, kBatchNorm, kSyncBatchNorm };

struct ModelSpec {
  std::string name = "custom";
  ModelFamily family = ModelFamily::kTransformer;

  // Transformer. Symbols of the papers in brackets.
  std::int64_t layers = 2;          ///< [L]
  std::int64_t hidden = 128;        ///< [h]
  std::int64_t heads = 4;           ///< [a]
  std::int64_t kv_heads = 4;        ///< [k]; fewer than heads = grouped-query attention
  std::int64_t head_dim = 32;       ///< need not equal hidden / heads
  std::int64_t intermediate = 512;  ///< [f] width of the MLP (per expert)
  std::int64_t vocab = 257;         ///< [V]
  std::int64_t max_position = 1024;
  NormKind norm = NormKind::kLayerNorm;
  ActivationKind activation = ActivationKind::kGelu;
  PositionKind position = PositionKind::kLearned;
  bool qkv_bias = true;
  bool output_bias = true;  ///< bias of the attention output projection
  bool mlp_bias = true;
  bool qk_norm = false;  ///< Qwen3: RMSNorm of width head_dim on q and k
  bool tied_embeddings = true;
  double norm_epsilon = 1e-5;
  double rope_theta = 10000.0;
  std::int64_t sliding_window = 0;  ///< 0 = full attention

  // Mixture of experts; experts == 0 means dense. Routing is assumed balanced.
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;

  // Multi-layer perceptron: Linear (bias) -> norm -> ReLU between consecutive widths; the last
  // Linear has neither norm nor ReLU. widths = {input, hidden..., classes}.
  std::vector<std::int64_t> widths;
  MlpNormKind mlp_norm = MlpNormKind::kNone;

  /// What a loader had to assume because the file did not say (empty for presets).
  std::vector<std::string> assumptions;

  bool is_moe() const { return experts > 0; }
  bool gated_mlp() const { return activation == ActivationKind::kSwiGlu; }
  std::int64_t query_width() const { return saturating_product({heads, head_dim}); }  ///< a * dh
  std::int64_t kv_width() const { return saturating_product({kv_heads, head_dim}); }  ///< k * dh
};

/// Logical parameters in closed form: each counted once (a tied head is the embedding), without
/// padding. The model graph counts the same number by its modules. Saturates outside the limits.
std::int64_t parameter_count(const ModelSpec& model);

/// Parameters that one token meets: as parameter_count, with only experts_per_token experts.
std::int64_t active_parameter_count(const ModelSpec& model);

/// All problems of the model by itself, with key paths below "model".
void validate(const ModelSpec& model, Problems& problems);

}  // namespace lockstep
