#include "core/model_templates.h"

#include <numeric>

namespace lockstep {
namespace {

/// Parameters of a transformer segment under the names that Hugging Face gives them.
class Parameters {
 public:
  Parameters(TemplateBuilder& builder, const ModelSpec& model)
      : builder_(builder), layer_norm_(model.norm == NormKind::kLayerNorm) {}

  std::vector<std::int16_t> norm(const std::string& name, std::int64_t width) {
    const PartialGradient partial = PartialGradient::kWithSequenceParallel;
    std::vector<std::int16_t> ids{vector(name + ".weight", width, ParameterCut::kNone, partial)};
    if (layer_norm_) {
      ids.push_back(vector(name + ".bias", width, ParameterCut::kNone, partial));
    }
    return ids;
  }
  /// RMSNorm over each head of queries and of keys, whatever norm the model has elsewhere. A
  /// tensor-parallel rank sees its own heads only, so its gradients are always parts of a sum.
  std::vector<std::int16_t> head_norm(const std::string& prefix, std::int64_t width) {
    std::vector<std::int16_t> ids;
    for (const char* name : {"q_norm.weight", "k_norm.weight"}) {
      ids.push_back(vector(prefix + name, width, ParameterCut::kNone, PartialGradient::kAlways));
    }
    return ids;
  }
  std::vector<std::int16_t> batch_norm(const std::string& name, std::int64_t width) {
    const PartialGradient never = PartialGradient::kNever;
    return {vector(name + ".weight", width, ParameterCut::kNone, never),
            vector(name + ".bias", width, ParameterCut::kNone, never)};
  }
  std::int16_t weight(const std::string& name,
                      std::int64_t rows,
                      std::int64_t columns,
                      ParameterCut cut) {
    ParameterDef definition;
    definition.suffix = name + ".weight";
    definition.rows = rows;
    definition.columns = columns;
    definition.cut = cut;
    if (cut == ParameterCut::kNone) {
      definition.partial = PartialGradient::kWithSequenceParallel;
    }
    return builder_.parameter(definition);
  }
  std::int16_t bias(const std::string& name, std::int64_t rows, ParameterCut cut) {
    const PartialGradient partial = cut == ParameterCut::kNone
                                        ? PartialGradient::kWithSequenceParallel
                                        : PartialGradient::kNever;
    return vector(name + ".bias", rows, cut, partial);
  }
  /// One weight (and bias) whose rows are several projections, one above the other.
  std::vector<std::int16_t> fused(const std::string& name,
                                  const std::vector<std::int64_t>& parts,
                                  std::int64_t columns,
                                  bool with_bias) {
    const std::int64_t rows = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
    std::vector<std::int16_t> ids{weight(name, rows, columns, ParameterCut::kRows)};
    if (with_bias) {
      ids.push_back(bias(name, rows, ParameterCut::kRows));
    }
    for (const std::int16_t id : ids) {
      builder_.at_parameter(id).parts = parts;
    }
    return ids;
  }

 private:
  std::int16_t vector(const std::string& name,
                      std::int64_t rows,
                      ParameterCut cut,
                      PartialGradient partial) {
    ParameterDef definition;
    definition.suffix = name;
    definition.rows = rows;
    definition.vector = true;
    definition.cut = cut;
    definition.partial = partial;
    return builder_.parameter(definition);
  }

  TemplateBuilder& builder_;
  bool layer_norm_;
};

std::int64_t statistics_width(const ModelSpec& model) {
  return model.norm == NormKind::kLayerNorm ? 2 : 1;  // mean and 1/std, or 1/rms
}

/// Parameter indices of the block's modules. Registration order is GPT-2's or Llama's.
struct BlockParameters {
  std::vector<std::int16_t> norm1, qkv, head_norm, out, norm2, router, up, down;
  std::int16_t qkv_weights = 1;
  std::int16_t up_weights = 1;
};

BlockParameters gpt2_block_parameters(TemplateBuilder& builder, const ModelSpec& m) {
  Parameters make(builder, m);
  BlockParameters ids;
  ids.norm1 = make.norm("ln_1", m.hidden);
  const std::vector<std::int64_t> qkv_parts{m.query_width(), m.kv_width(), m.kv_width()};
  ids.qkv = make.fused("attn.c_attn", qkv_parts, m.hidden, m.qkv_bias);
  ids.out.push_back(make.weight("attn.c_proj", m.hidden, m.query_width(), ParameterCut::kColumns));
  if (m.output_bias) {
    ids.out.push_back(make.bias("attn.c_proj", m.hidden, ParameterCut::kNone));
  }
  if (m.qk_norm) {
    ids.head_norm = make.head_norm("attn.", m.head_dim);
  }
  ids.norm2 = make.norm("ln_2", m.hidden);
  const std::vector<std::int64_t> up_parts(m.gated_mlp() ? 2 : 1, m.intermediate);
  ids.up = make.fused("mlp.c_fc", up_parts, m.hidden, m.mlp_bias);
  ids.down.push_back(make.weight("mlp.c_proj", m.hidden, m.intermediate, ParameterCut::kColumns));
  if (m.mlp_bias) {
    ids.down.push_back(make.bias("mlp.c_proj", m.hidden, ParameterCut::kNone));
  }
  return ids;
}

/// Weights first, then biases, as core/operands.h wants them; registration order interleaves them.
struct Projections {
  Parameters& make;
  bool with_bias = false;
  std::vector<std::int16_t> weights = {};
  std::vector<std::int16_t> biases = {};

  void add(const std::string& name, std::int64_t rows, std::int64_t columns) {
    weights.push_back(make.weight(name, rows, columns, ParameterCut::kRows));
    if (with_bias) {
      biases.push_back(make.bias(name, rows, ParameterCut::kRows));
    }
  }
  std::vector<std::int16_t> parameters() const {
    std::vector<std::int16_t> all = weights;
    all.insert(all.end(), biases.begin(), biases.end());
    return all;
  }
};

BlockParameters llama_block_parameters(TemplateBuilder& builder, const ModelSpec& m) {
  Parameters make(builder, m);
  BlockParameters ids;
  Projections qkv{make, m.qkv_bias};
  qkv.add("self_attn.q_proj", m.query_width(), m.hidden);
  qkv.add("self_attn.k_proj", m.kv_width(), m.hidden);
  qkv.add("self_attn.v_proj", m.kv_width(), m.hidden);
  ids.qkv_weights = 3;
  ids.qkv = qkv.parameters();
  ids.out.push_back(
      make.weight("self_attn.o_proj", m.hidden, m.query_width(), ParameterCut::kColumns));
  if (m.output_bias) {
    ids.out.push_back(make.bias("self_attn.o_proj", m.hidden, ParameterCut::kNone));
  }
  if (m.qk_norm) {
    ids.head_norm = make.head_norm("self_attn.", m.head_dim);
  }
  const std::int64_t copies = m.is_moe() ? m.experts : 1;
  if (m.is_moe()) {
    ids.router.push_back(make.weight("mlp.gate", m.experts, m.hidden, ParameterCut::kNone));
  }
  Projections up{make, m.mlp_bias};
  if (m.gated_mlp()) {
    up.add("mlp.gate_proj", copies * m.intermediate, m.hidden);
    ids.up_weights = 2;
  }
  up.add("mlp.up_proj", copies * m.intermediate, m.hidden);
  ids.up = up.parameters();
  ids.down.push_back(
      make.weight("mlp.down_proj", copies * m.hidden, m.intermediate, ParameterCut::kColumns));
  if (m.mlp_bias) {
    ids.down.push_back(make.bias("mlp.down_proj", copies * m.hidden, ParameterCut::kNone));
  }
  ids.norm1 = make.norm("input_layernorm", m.hidden);
  ids.norm2 = make.norm("post_attention_layernorm", m.hidden);
  return ids;
}

/// A product with one weight and one group, unless the caller says otherwise.
ModuleDef& add_linear(TemplateBuilder& builder,
                      const char* name,
                      LinearCut cut,
                      std::int8_t input,
                      std::int8_t output,
                      const std::vector<std::int16_t>& parameters) {
  ModuleDef& module = builder.module(ModuleKind::kLinear, name, {input}, {output}, parameters);
  module.cut = cut;
  module.weights = 1;
  return module;
}

std::int8_t add_norm(TemplateBuilder& builder,
                     const ModelSpec& model,
                     const char* name,
                     std::int8_t input,
                     const std::vector<std::int16_t>& parameters) {
  const std::int8_t output = builder.tensor(name, Region::kTokens, model.hidden);
  const std::int8_t statistics = builder.tensor(
      "norm statistics", Region::kTokens, statistics_width(model), TensorType::kFp32);
  builder.at(statistics).statistic = true;
  builder.module(ModuleKind::kNorm, name, {input}, {output, statistics}, parameters);
  return output;
}

std::int8_t add_dropout(TemplateBuilder& builder,
                        const char* name,
                        std::int8_t input,
                        std::int64_t width) {
  const std::int8_t output = builder.tensor(name, Region::kTokens, width);
  const std::int8_t mask =
      builder.tensor("dropout mask", Region::kTokens, width, TensorType::kMask);
  builder.module(ModuleKind::kDropout, name, {input}, {output, mask});
  return output;
}

std::int8_t add_attention(TemplateBuilder& builder,
                          const ModelSpec& model,
                          AttentionKind attention,
                          bool dropout,
                          std::int8_t qkv) {
  std::vector<std::int8_t> outputs{
      builder.tensor("attention", Region::kWidth, model.query_width())};
  if (attention == AttentionKind::kFlash) {
    outputs.push_back(builder.tensor("log-sum-exp", Region::kHeadRows, 1, TensorType::kFp32));
    builder.at(outputs.back()).statistic = true;
  } else {
    outputs.push_back(builder.tensor("probabilities", Region::kScores, 1));
    if (dropout) {
      outputs.push_back(
          builder.tensor("attention dropout mask", Region::kScores, 1, TensorType::kMask));
      outputs.push_back(builder.tensor("dropped probabilities", Region::kScores, 1));
    }
  }
  const std::int8_t output = outputs.front();
  builder.module(ModuleKind::kAttention, "attn.core", {qkv}, std::move(outputs)).saves_output =
      attention == AttentionKind::kFlash;
  return output;
}

/// norm -> qkv -> [head norm] -> [rope] -> attention -> out -> [dropout] -> residual.
std::int8_t add_attention_half(TemplateBuilder& builder,
                               const ModelSpec& model,
                               AttentionKind attention,
                               bool dropout,
                               std::int8_t x,
                               const BlockParameters& ids) {
  const std::int64_t qkv_width = model.query_width() + 2 * model.kv_width();
  const std::int8_t normed = add_norm(builder, model, "norm1", x, ids.norm1);
  std::int8_t qkv = builder.tensor("qkv", Region::kWidth, qkv_width);
  add_linear(builder, "attn.qkv", LinearCut::kColumn, normed, qkv, ids.qkv).weights =
      ids.qkv_weights;
  if (model.qk_norm) {
    const std::int8_t raw = qkv;
    qkv = builder.tensor("normed qkv", Region::kWidth, qkv_width);
    const std::int8_t statistics = builder.tensor(
        "head norm statistics", Region::kWidth, model.heads + model.kv_heads, TensorType::kFp32);
    builder.at(statistics).statistic = true;
    builder.module(ModuleKind::kHeadNorm, "attn.qk_norm", {raw}, {qkv, statistics}, ids.head_norm);
  }
  if (model.position == PositionKind::kRope) {
    const std::int8_t rotated = builder.tensor("rotated qkv", Region::kWidth, qkv_width);
    builder.at(rotated).alias = true;
    builder.module(ModuleKind::kRope, "attn.rope", {qkv}, {rotated});
    qkv = rotated;
  }
  const std::int8_t core = add_attention(builder, model, attention, dropout, qkv);
  std::int8_t out = builder.tensor("attention output", Region::kTokens, model.hidden);
  add_linear(builder, "attn.out", LinearCut::kRow, core, out, ids.out);
  if (dropout) {
    out = add_dropout(builder, "attn.dropout", out, model.hidden);
  }
  const std::int8_t sum = builder.tensor("middle", Region::kTokens, model.hidden);
  builder.module(ModuleKind::kResidual, "attn.residual", {x, out}, {sum});
  return sum;
}

/// up -> activation -> down on `per_token` rows per token.
std::int8_t add_feed_forward(TemplateBuilder& builder,
                             const ModelSpec& model,
                             std::int8_t input,
                             const BlockParameters& ids,
                             std::int64_t per_token) {
  const auto groups = static_cast<std::int16_t>(model.is_moe() ? model.experts : 1);
  const std::int8_t up =
      builder.tensor("mlp up", Region::kWidth, (model.gated_mlp() ? 2 : 1) * model.intermediate);
  ModuleDef& up_module = add_linear(builder, "mlp.up", LinearCut::kColumn, input, up, ids.up);
  up_module.weights = ids.up_weights;
  up_module.groups = groups;
  const std::int8_t active = builder.tensor("mlp activation", Region::kWidth, model.intermediate);
  builder.module(ModuleKind::kActivation, "mlp.activation", {up}, {active});
  const std::int8_t down = builder.tensor("mlp down", Region::kTokens, model.hidden);
  add_linear(builder, "mlp.down", LinearCut::kRow, active, down, ids.down).groups = groups;
  for (const std::int8_t tensor : {up, active, down}) {
    builder.at(tensor).per_token = per_token;
  }
  return down;
}

/// router -> dispatch -> experts -> combine. Routing is taken as balanced: every expert gets
/// tokens * experts_per_token / experts rows.
std::int8_t add_experts(TemplateBuilder& builder,
                        const ModelSpec& model,
                        std::int8_t input,
                        const BlockParameters& ids) {
  const std::int64_t top = model.experts_per_token;
  const std::int8_t logits = builder.tensor("router logits", Region::kTokens, model.experts);
  add_linear(builder, "mlp.router", LinearCut::kNone, input, logits, ids.router);
  const std::int8_t weights = builder.tensor("router weights", Region::kTokens, top);
  const std::int8_t chosen =
      builder.tensor("chosen experts", Region::kTokens, top, TensorType::kTokenIds);
  builder.module(ModuleKind::kRouter, "mlp.route", {logits}, {weights, chosen});
  const std::int8_t rows = builder.tensor("expert rows", Region::kTokens, model.hidden);
  builder.at(rows).per_token = top;
  builder.module(ModuleKind::kDispatch, "mlp.dispatch", {input, chosen}, {rows});
  const std::int8_t expert_out = add_feed_forward(builder, model, rows, ids, top);
  const std::int8_t out = builder.tensor("combined", Region::kTokens, model.hidden);
  builder.module(ModuleKind::kCombine, "mlp.combine", {expert_out, weights, chosen}, {out});
  return out;
}

SegmentTemplate block_template(const ModelSpec& model, AttentionKind attention, bool dropout) {
  const bool gpt2_names = model.norm == NormKind::kLayerNorm;
  TemplateBuilder builder(gpt2_names ? "h." : "layers.");
  const BlockParameters ids = gpt2_names && !model.is_moe()
                                  ? gpt2_block_parameters(builder, model)
                                  : llama_block_parameters(builder, model);
  const std::int8_t x = builder.tensor("block input", Region::kTokens, model.hidden);
  const std::int8_t middle = add_attention_half(builder, model, attention, dropout, x, ids);
  const std::int8_t normed = add_norm(builder, model, "norm2", middle, ids.norm2);
  std::int8_t out = model.is_moe() ? add_experts(builder, model, normed, ids)
                                   : add_feed_forward(builder, model, normed, ids, 1);
  if (dropout) {
    out = add_dropout(builder, "mlp.dropout", out, model.hidden);
  }
  const std::int8_t sum = builder.tensor("block output", Region::kTokens, model.hidden);
  builder.module(ModuleKind::kResidual, "mlp.residual", {middle, out}, {sum});
  return builder.finish(x, sum);
}

ParameterDef vocabulary_weight(const ModelSpec& model, const char* suffix, bool tied) {
  ParameterDef definition;
  definition.suffix = suffix;
  definition.rows = model.vocab;
  definition.columns = model.hidden;
  definition.vocabulary = true;
  definition.cut = ParameterCut::kRows;
  definition.tied = tied;
  return definition;
}

SegmentTemplate embedding_template(const ModelSpec& model, bool dropout) {
  TemplateBuilder builder("");
  const bool gpt2_names = model.norm == NormKind::kLayerNorm;
  const std::int16_t table = builder.parameter(
      vocabulary_weight(model, gpt2_names ? "wte.weight" : "embed_tokens.weight", false));
  const std::int8_t tokens = builder.tensor("tokens", Region::kAllTokens, 1, TensorType::kTokenIds);
  std::int8_t x = builder.tensor("embedded", Region::kTokens, model.hidden);
  builder.module(ModuleKind::kEmbedding, "embedding", {tokens}, {x}, {table}).weights = 1;
  if (model.position == PositionKind::kLearned) {
    const std::int16_t positions = Parameters(builder, model)
                                       .weight(gpt2_names ? "wpe" : "embed_positions",
                                               model.max_position,
                                               model.hidden,
                                               ParameterCut::kNone);
    const std::int8_t placed = builder.tensor("with positions", Region::kTokens, model.hidden);
    builder.at(placed).alias = true;
    builder.module(ModuleKind::kPosition, "position", {x}, {placed}, {positions}).weights = 1;
    x = placed;
  }
  if (dropout) {
    x = add_dropout(builder, "embedding.dropout", x, model.hidden);
  }
  return builder.finish(tokens, x);
}

SegmentTemplate head_template(const ModelSpec& model) {
  TemplateBuilder builder("");
  const bool gpt2_names = model.norm == NormKind::kLayerNorm;
  const std::int8_t x = builder.tensor("head input", Region::kTokens, model.hidden);
  Parameters make(builder, model);
  const std::int8_t normed = add_norm(
      builder, model, "final_norm", x, make.norm(gpt2_names ? "ln_f" : "norm", model.hidden));
  const std::int16_t weight =
      builder.parameter(vocabulary_weight(model, "lm_head.weight", model.tied_embeddings));
  const std::int8_t logits = builder.tensor("logits", Region::kWidth, model.vocab);
  add_linear(builder, "head", LinearCut::kColumn, normed, logits, {weight});
  const std::int8_t labels = builder.tensor("labels", Region::kAllTokens, 1, TensorType::kTokenIds);
  builder.module(ModuleKind::kLoss, "loss", {logits, labels}, {});
  return builder.finish(x, logits);
}

}  // namespace

std::vector<SegmentTemplate> transformer_templates(const ModelSpec& model,
                                                   AttentionKind attention,
                                                   bool dropout) {
  return {embedding_template(model, dropout),
          block_template(model, attention, dropout),
          head_template(model)};
}

std::vector<SegmentTemplate> mlp_templates(const ModelSpec& model) {
  std::vector<SegmentTemplate> templates;
  const auto layer_count = static_cast<std::int64_t>(model.widths.size()) - 1;
  for (std::int64_t layer = 0; layer < layer_count; ++layer) {
    const std::int64_t in = model.widths[static_cast<std::size_t>(layer)];
    const std::int64_t out = model.widths[static_cast<std::size_t>(layer) + 1];
    const bool last = layer + 1 == layer_count;
    TemplateBuilder builder("layers.");
    Parameters make(builder, model);
    const std::int8_t x = builder.tensor("input", Region::kTokens, in);
    const std::int16_t weight = make.weight("linear", out, in, ParameterCut::kNone);
    const std::int16_t bias = make.bias("linear", out, ParameterCut::kNone);
    std::int8_t y = builder.tensor(
        last ? "logits" : "linear output", last ? Region::kWidth : Region::kTokens, out);
    add_linear(builder, last ? "head" : "linear", LinearCut::kNone, x, y, {weight, bias});
    if (last) {
      const std::int8_t labels =
          builder.tensor("labels", Region::kAllTokens, 1, TensorType::kTokenIds);
      builder.module(ModuleKind::kLoss, "loss", {y, labels}, {});
      templates.push_back(builder.finish(x, y));
      continue;
    }
    if (model.mlp_norm != MlpNormKind::kNone) {
      const std::int8_t normed = builder.tensor("normed", Region::kTokens, out);
      const std::int8_t sums =
          builder.tensor("batch sums", Region::kVector, 2 * out + 1, TensorType::kFp32);
      builder.at(sums).statistic = true;
      builder.module(ModuleKind::kBatchNorm,
                     "batch_norm",
                     {y},
                     {normed, sums},
                     make.batch_norm("batch_norm", out));
      y = normed;
    }
    const std::int8_t active = builder.tensor("active", Region::kTokens, out);
    builder.module(ModuleKind::kActivation, "activation", {y}, {active});
    templates.push_back(builder.finish(x, active));
  }
  return templates;
}

// ---- TemplateBuilder ---------------------------------------------------------------------------

std::int8_t TemplateBuilder::tensor(const char* name,
                                    Region region,
                                    std::int64_t width,
                                    TensorType type) {
  TensorDef definition;
  definition.name = name;
  definition.region = region;
  definition.width = width;
  definition.type = type;
  form_.tensors.push_back(std::move(definition));
  return static_cast<std::int8_t>(form_.tensors.size() - 1);
}

std::int16_t TemplateBuilder::parameter(ParameterDef parameter) {
  form_.parameters.push_back(std::move(parameter));
  return static_cast<std::int16_t>(form_.parameters.size() - 1);
}

ModuleDef& TemplateBuilder::module(ModuleKind kind,
                                   const char* name,
                                   std::vector<std::int8_t> inputs,
                                   std::vector<std::int8_t> outputs,
                                   std::vector<std::int16_t> parameters) {
  ModuleDef definition;
  definition.kind = kind;
  definition.name = name;
  definition.inputs = std::move(inputs);
  definition.outputs = std::move(outputs);
  definition.parameters = std::move(parameters);
  form_.modules.push_back(std::move(definition));
  return form_.modules.back();
}

/// Tensors that the backward of a module reads: the contract of core/operands.h.
std::vector<std::int8_t> backward_reads(const ModuleDef& module) {
  const std::vector<std::int8_t>& in = module.inputs;
  const std::vector<std::int8_t>& out = module.outputs;
  switch (module.kind) {
    case ModuleKind::kEmbedding:
    case ModuleKind::kLinear:
    case ModuleKind::kActivation:
      return {in[0]};
    case ModuleKind::kNorm:
    case ModuleKind::kHeadNorm:
    case ModuleKind::kBatchNorm:
      return {in[0], out[1]};
    case ModuleKind::kAttention: {
      std::vector<std::int8_t> reads{in[0]};
      for (std::size_t i = module.saves_output ? 0 : 1; i < out.size(); ++i) {
        reads.push_back(out[i]);
      }
      return reads;
    }
    case ModuleKind::kDropout:
      return {out[1]};
    case ModuleKind::kRouter:
      return {in[0], out[1]};
    case ModuleKind::kDispatch:
      return {in[1]};
    case ModuleKind::kCombine:
      return {in[0], in[1], in[2]};
    case ModuleKind::kPosition:
    case ModuleKind::kRope:
    case ModuleKind::kResidual:
    case ModuleKind::kLoss:
      return {};
  }
  return {};
}

bool differentiable(const TensorDef& tensor) {
  return tensor.type == TensorType::kActivation && !tensor.statistic;
}

SegmentTemplate TemplateBuilder::finish(std::int8_t input, std::int8_t output) {
  form_.input = input;
  form_.output = output;
  for (std::size_t t = 0; t < form_.tensors.size(); ++t) {
    form_.tensors[t].storage = static_cast<std::int8_t>(t);
  }
  for (std::size_t index = 0; index < form_.modules.size(); ++index) {
    ModuleDef& module = form_.modules[index];
    const auto number = static_cast<std::int16_t>(index);
    for (const std::int8_t tensor : module.outputs) {
      if (at(tensor).alias) {
        at(tensor).storage = at(module.inputs.front()).storage;
      }
      at(at(tensor).storage).last_reader = number;
    }
    for (const std::int8_t tensor : module.inputs) {
      at(at(tensor).storage).last_reader = number;
      at(tensor).gradient_sources = static_cast<std::int16_t>(at(tensor).gradient_sources +
                                                              (differentiable(at(tensor)) ? 1 : 0));
    }
    for (const std::int8_t tensor : backward_reads(module)) {
      const std::int8_t storage = at(tensor).storage;
      module.saved.push_back(storage);
      if (!at(storage).saved()) {
        at(storage).first_saver = number;
      }
    }
  }
  return std::move(form_);
}

}  // namespace lockstep
