#include "core/model.h"

#include "core/limits.h"
#include "core/validate_fields.h"

namespace lockstep {
namespace {

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  return saturating_product(factors);
}

/// Parameters of one norm of `width`: LayerNorm has weight and bias, RMSNorm a weight.
std::int64_t norm_parameters(const ModelSpec& model, std::int64_t width) {
  return product({model.norm == NormKind::kLayerNorm ? 2 : 1, width});
}

std::int64_t attention_parameters(const ModelSpec& model) {
  const std::int64_t qkv = saturating_sum({model.query_width(), product({2, model.kv_width()})});
  return saturating_sum({product({model.hidden, qkv}),
                         model.qkv_bias ? qkv : 0,
                         product({model.query_width(), model.hidden}),
                         model.output_bias ? model.hidden : 0,
                         model.qk_norm ? product({2, model.head_dim}) : 0});
}

/// The MLP of a layer, or one expert of it.
std::int64_t mlp_parameters(const ModelSpec& model) {
  const std::int64_t up = model.gated_mlp() ? 2 : 1;  // SwiGLU: gate and up
  return saturating_sum({product({up + 1, model.hidden, model.intermediate}),
                         model.mlp_bias ? product({up, model.intermediate}) : 0,
                         model.mlp_bias ? model.hidden : 0});
}

std::int64_t layer_parameters(const ModelSpec& model, std::int64_t experts_counted) {
  const std::int64_t mlp = model.is_moe()
                               ? saturating_sum({product({experts_counted, mlp_parameters(model)}),
                                                 product({model.experts, model.hidden})})  // router
                               : mlp_parameters(model);
  return saturating_sum(
      {attention_parameters(model), mlp, product({2, norm_parameters(model, model.hidden)})});
}

std::int64_t transformer_parameters(const ModelSpec& model, std::int64_t experts_counted) {
  const std::int64_t embedding = product({model.vocab, model.hidden});
  return saturating_sum(
      {embedding,
       model.position == PositionKind::kLearned ? product({model.max_position, model.hidden}) : 0,
       product({model.layers, layer_parameters(model, experts_counted)}),
       norm_parameters(model, model.hidden),
       model.tied_embeddings ? 0 : embedding});
}

std::int64_t perceptron_parameters(const ModelSpec& model) {
  std::int64_t total = 0;
  for (std::size_t i = 1; i < model.widths.size(); ++i) {
    const bool last = i + 1 == model.widths.size();
    const std::int64_t norm = last || model.mlp_norm == MlpNormKind::kNone ? 0 : 2;
    total = saturating_sum({total,
                            product({model.widths[i - 1], model.widths[i]}),
                            product({1 + norm, model.widths[i]})});
  }
  return total;
}

void validate_transformer(const ModelSpec& model, Problems& problems) {
  const bool counts = model.heads > 0 && model.kv_heads > 0;
  problems.require(!counts || (model.kv_heads <= model.heads && model.heads % model.kv_heads == 0),
                   "model.kv_heads",
                   "must divide model.heads: each group of query heads shares one kv head");
  problems.require(model.position != PositionKind::kRope || model.head_dim % 2 == 0,
                   "model.head_dim",
                   "must be even with rotary positions, which rotate pairs of elements");
  problems.require(model.experts == 0 || model.experts_per_token >= 1,
                   "model.experts_per_token",
                   "must be at least 1 when model.experts is set");
  problems.require(model.experts_per_token <= model.experts,
                   "model.experts_per_token",
                   "must not exceed model.experts (0 for a dense model)");
  problems.require(model.widths.empty(), "model.widths", "is for model.family \"mlp\" only");
  problems.require(model.mlp_norm == MlpNormKind::kNone,
                   "model.mlp_norm",
                   "is for model.family \"mlp\" only; a transformer has model.norm");
}

}  // namespace

std::int64_t parameter_count(const ModelSpec& model) {
  return model.family == ModelFamily::kMlp ? perceptron_parameters(model)
                                           : transformer_parameters(model, model.experts);
}

std::int64_t active_parameter_count(const ModelSpec& model) {
  return model.family == ModelFamily::kMlp ? perceptron_parameters(model)
                                           : transformer_parameters(model, model.experts_per_token);
}

void validate(const ModelSpec& model, Problems& problems) {
  validate_fields("model", model, problems);
  if (model.family == ModelFamily::kMlp) {
    problems.require(model.widths.size() >= 2,
                     "model.widths",
                     "needs at least an input and an output width for model.family \"mlp\"");
  } else {
    validate_transformer(model, problems);
  }
  if (parameter_count(model) > kMaxParameters) {
    problems.add("model", "has more than 2^50 parameters, the limit of Lockstep's arithmetic");
  }
}

}  // namespace lockstep
