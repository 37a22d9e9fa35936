#include "core/model_presets.h"

#include <utility>

#include "core/names.h"

namespace lockstep {
namespace {

/// GPT-2 form: LayerNorm, GELU, learned positions, biases everywhere, tied embeddings, f = 4h.
ModelSpec gpt(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  ModelSpec model;
  model.name = name;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.kv_heads = heads;
  model.head_dim = hidden / heads;
  model.intermediate = 4 * hidden;
  model.vocab = 50257;
  model.max_position = 1024;
  return model;
}

struct Shape {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t intermediate = 0;
};

/// Llama form: RMSNorm, SwiGLU, rotary positions, no biases, own head matrix.
ModelSpec llama(const char* name,
                const Shape& shape,
                std::int64_t vocab,
                std::int64_t max_position) {
  ModelSpec model;
  model.name = name;
  model.layers = shape.layers;
  model.hidden = shape.hidden;
  model.heads = shape.heads;
  model.kv_heads = shape.kv_heads;
  model.head_dim = shape.hidden / shape.heads;
  model.intermediate = shape.intermediate;
  model.vocab = vocab;
  model.max_position = max_position;
  model.norm = NormKind::kRmsNorm;
  model.activation = ActivationKind::kSwiGlu;
  model.position = PositionKind::kRope;
  model.qkv_bias = false;
  model.output_bias = false;
  model.mlp_bias = false;
  model.tied_embeddings = false;
  return model;
}

ModelSpec llama3(const char* name, const Shape& shape) {
  ModelSpec model = llama(name, shape, 128256, 131072);
  model.rope_theta = 500000;
  return model;
}

ModelSpec qwen2(const char* name, const Shape& shape, std::int64_t vocab) {
  ModelSpec model = llama(name, shape, vocab, 131072);
  model.qkv_bias = true;
  model.norm_epsilon = 1e-6;
  model.rope_theta = 1e6;
  return model;
}

ModelSpec qwen3(const char* name, const Shape& shape) {
  ModelSpec model = llama(name, shape, 151936, 40960);
  model.head_dim = 128;  // not hidden / heads
  model.qk_norm = true;
  model.norm_epsilon = 1e-6;
  model.rope_theta = 1e6;
  return model;
}

ModelSpec mixtral(const char* name, const Shape& shape) {
  ModelSpec model = llama(name, shape, 32000, 32768);
  model.rope_theta = 1e6;
  model.experts = 8;
  model.experts_per_token = 2;
  return model;
}

ModelSpec mistral(const char* name, const Shape& shape) {
  ModelSpec model = llama(name, shape, 32000, 32768);
  model.sliding_window = 4096;
  return model;
}

ModelSpec tied(ModelSpec model) {
  model.tied_embeddings = true;
  return model;
}

ModelSpec with_tokens(ModelSpec model, std::int64_t vocab, std::int64_t max_position) {
  model.vocab = vocab;
  model.max_position = max_position;
  return model;
}

ModelSpec mlp(const char* name, std::vector<std::int64_t> widths, MlpNormKind norm) {
  ModelSpec model;
  model.name = name;
  model.family = ModelFamily::kMlp;
  model.widths = std::move(widths);
  model.mlp_norm = norm;
  return model;
}

using Presets = std::vector<ModelPreset>;

void add_gpt(Presets& presets) {
  presets.push_back({gpt("gpt2", 12, 768, 12),
                     "model card openai-community/gpt2",
                     {"gpt2-small", "gpt2-124m", "openai-community/gpt2"}});
  presets.push_back({gpt("gpt2-medium", 24, 1024, 16),
                     "model card openai-community/gpt2-medium",
                     {"gpt2-355m", "openai-community/gpt2-medium"}});
  presets.push_back({gpt("gpt2-large", 36, 1280, 20),
                     "model card openai-community/gpt2-large",
                     {"gpt2-774m", "openai-community/gpt2-large"}});
  presets.push_back({gpt("gpt2-xl", 48, 1600, 25),
                     "model card openai-community/gpt2-xl",
                     {"gpt2-1.5b", "openai-community/gpt2-xl"}});
  presets.push_back({with_tokens(gpt("gpt-7.5b", 36, 4096, 32), 51200, 2048),
                     "Narayanan et al. 2021 (Megatron-LM), table 1, row 7.5B; the size of figure 1 "
                     "of the ZeRO paper",
                     {"zero-7.5b", "megatron-7.5b"}});
  presets.push_back({with_tokens(gpt("gpt3-175b", 96, 12288, 96), 51200, 2048),
                     "Brown et al. 2020 (GPT-3), table 2.1, with the vocabulary that Megatron-LM "
                     "pads to 51200",
                     {"gpt3", "gpt-3", "gpt-175b", "gpt3-175"}});
}

void add_llama(Presets& presets) {
  presets.push_back({llama("llama-2-7b", {32, 4096, 32, 32, 11008}, 32000, 4096),
                     "model card meta-llama/Llama-2-7b-hf",
                     {"llama2-7b", "meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-7b"}});
  presets.push_back({llama("llama-2-13b", {40, 5120, 40, 40, 13824}, 32000, 4096),
                     "model card meta-llama/Llama-2-13b-hf",
                     {"llama2-13b", "meta-llama/Llama-2-13b-hf", "meta-llama/Llama-2-13b"}});
  presets.push_back({llama("llama-2-70b", {80, 8192, 64, 8, 28672}, 32000, 4096),
                     "model card meta-llama/Llama-2-70b-hf",
                     {"llama2-70b", "meta-llama/Llama-2-70b-hf", "meta-llama/Llama-2-70b"}});
  presets.push_back({tied(llama3("llama-3.2-1b", {16, 2048, 32, 8, 8192})),
                     "model card meta-llama/Llama-3.2-1B",
                     {"llama3.2-1b", "meta-llama/Llama-3.2-1B"}});
  presets.push_back({llama3("llama-3.1-8b", {32, 4096, 32, 8, 14336}),
                     "model card meta-llama/Llama-3.1-8B",
                     {"llama3-8b", "llama-3-8b", "llama3.1-8b", "meta-llama/Llama-3.1-8B"}});
  presets.push_back({llama3("llama-3.1-70b", {80, 8192, 64, 8, 28672}),
                     "model card meta-llama/Llama-3.1-70B",
                     {"llama3-70b", "llama-3-70b", "llama3.1-70b", "meta-llama/Llama-3.1-70B"}});
  presets.push_back(
      {llama3("llama-3.1-405b", {126, 16384, 128, 8, 53248}),
       "model card meta-llama/Llama-3.1-405B",
       {"llama3-405b", "llama-3-405b", "llama3.1-405b", "meta-llama/Llama-3.1-405B"}});
}

void add_mistral(Presets& presets) {
  presets.push_back({mistral("mistral-7b", {32, 4096, 32, 8, 14336}),
                     "model card mistralai/Mistral-7B-v0.1",
                     {"mistral-7b-v0.1", "mistralai/Mistral-7B-v0.1"}});
  presets.push_back({mixtral("mixtral-8x7b", {32, 4096, 32, 8, 14336}),
                     "model card mistralai/Mixtral-8x7B-v0.1",
                     {"mixtral", "mixtral-8x7b-v0.1", "mistralai/Mixtral-8x7B-v0.1"}});
}

void add_qwen(Presets& presets) {
  ModelSpec small = tied(qwen2("qwen2.5-0.5b", {24, 896, 14, 2, 4864}, 151936));
  small.max_position = 32768;
  presets.push_back({small,
                     "model card Qwen/Qwen2.5-0.5B",
                     {"qwen2-0.5b", "qwen-2.5-0.5b", "Qwen/Qwen2.5-0.5B"}});
  presets.push_back({qwen2("qwen2.5-7b", {28, 3584, 28, 4, 18944}, 152064),
                     "model card Qwen/Qwen2.5-7B",
                     {"qwen2-7b", "qwen-2.5-7b", "Qwen/Qwen2.5-7B"}});
  presets.push_back({tied(qwen3("qwen3-0.6b", {28, 1024, 16, 8, 3072})),
                     "model card Qwen/Qwen3-0.6B",
                     {"qwen-3-0.6b", "Qwen/Qwen3-0.6B"}});
  presets.push_back({qwen3("qwen3-8b", {36, 4096, 32, 8, 12288}),
                     "model card Qwen/Qwen3-8B",
                     {"qwen-3-8b", "Qwen/Qwen3-8B"}});
}

/// Small enough to train on a laptop, and indivisible enough (257 tokens) to show padding.
void add_tiny(Presets& presets) {
  const std::string ours = "ours, for real runs of seconds";
  const std::int64_t byte_vocab = 257;  // 256 byte values and an end of text
  presets.push_back({with_tokens(gpt("gpt2-tiny", 4, 64, 4), byte_vocab, 128), ours, {"tiny"}});
  presets.push_back({with_tokens(gpt("gpt2-mini", 6, 384, 6), byte_vocab, 256),
                     "ours: the executor's speed benchmark",
                     {"mini"}});
  presets.push_back({llama("llama-tiny", {4, 96, 6, 2, 256}, byte_vocab, 128), ours, {}});
  ModelSpec moe = llama("mixtral-tiny", {4, 96, 6, 2, 128}, byte_vocab, 128);
  moe.experts = 4;
  moe.experts_per_token = 2;
  presets.push_back({moe, ours, {"moe-tiny"}});
  presets.push_back({mlp("mlp-tiny", {64, 128, 128, 10}, MlpNormKind::kNone), ours, {"mlp"}});
  presets.push_back({mlp("mlp-tiny-bn", {64, 128, 128, 10}, MlpNormKind::kBatchNorm), ours, {}});
  presets.push_back(
      {mlp("mlp-tiny-syncbn", {64, 128, 128, 10}, MlpNormKind::kSyncBatchNorm), ours, {}});
  presets.push_back({mlp("mlp-3linear", {64, 256, 64, 32}, MlpNormKind::kNone),
                     "the net on which ZeroRedundancyOptimizer's partition was measured",
                     {}});
  presets.push_back(
      {mlp("mlp-8linear", {512, 512, 2048, 512, 4096, 512, 2048, 2048, 64}, MlpNormKind::kNone),
       "the net on which DDP's bucket tables were measured",
       {"8-linear"}});
}

Presets all_presets() {
  Presets presets;
  add_gpt(presets);
  add_llama(presets);
  add_mistral(presets);
  add_qwen(presets);
  add_tiny(presets);
  return presets;
}

}  // namespace

const std::vector<ModelPreset>& model_presets() {
  static const Presets presets = all_presets();
  return presets;
}

std::optional<ModelSpec> find_model_preset(std::string_view name) {
  for (const ModelPreset& preset : model_presets()) {
    if (same_word(preset.model.name, name)) {
      return preset.model;
    }
    for (const std::string& alias : preset.aliases) {
      if (same_word(alias, name)) {
        return preset.model;
      }
    }
  }
  return std::nullopt;
}

std::string unknown_model_message(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ModelPreset& preset : model_presets()) {
    names.push_back(preset.model.name);
  }
  return not_valid_message(name, names);
}

}  // namespace lockstep
