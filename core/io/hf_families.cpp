#include "core/io/hf_families.h"

namespace lockstep {
namespace {

ModelSpec shape(std::int64_t layers,
                std::int64_t hidden,
                std::int64_t heads,
                std::int64_t kv_heads,
                std::int64_t intermediate) {
  ModelSpec m;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.kv_heads = kv_heads;
  m.head_dim = 0;
  m.intermediate = intermediate;
  return m;
}

ModelSpec llama_form(ModelSpec m, std::int64_t vocab, std::int64_t max_position) {
  m.vocab = vocab;
  m.max_position = max_position;
  m.norm = NormKind::kRmsNorm;
  m.activation = ActivationKind::kSwiGlu;
  m.position = PositionKind::kRope;
  m.qkv_bias = m.output_bias = m.mlp_bias = false;
  m.tied_embeddings = false;
  m.norm_epsilon = 1e-6;
  return m;
}

HfFamily gpt2_family() {
  ModelSpec m = shape(12, 768, 12, 0, 0);
  m.vocab = 50257;
  return {"gpt2", "GPT2Config", m};
}

HfFamily llama_family() {
  return {"llama", "LlamaConfig", llama_form(shape(32, 4096, 32, 0, 11008), 32000, 2048)};
}

HfFamily mistral_family() {
  ModelSpec m = llama_form(shape(32, 4096, 32, 8, 14336), 32000, 131072);
  m.sliding_window = 4096;
  return {"mistral", "MistralConfig", m};
}

HfFamily mixtral_family() {
  ModelSpec m = llama_form(shape(32, 4096, 32, 8, 14336), 32000, 131072);
  m.norm_epsilon = 1e-5;
  m.rope_theta = 1e6;
  m.experts = 8;
  m.experts_per_token = 2;
  return {"mixtral", "MixtralConfig", m};
}

HfFamily qwen2_family() {
  ModelSpec m = llama_form(shape(32, 4096, 32, 32, 22016), 151936, 32768);
  m.qkv_bias = true;  // hard-coded in the class, no key
  return {"qwen2", "Qwen2Config", m};
}

HfFamily qwen3_family() {
  ModelSpec m = llama_form(shape(32, 4096, 32, 32, 22016), 151936, 32768);
  m.head_dim = 128;
  m.qk_norm = true;  // hard-coded in the class, no key
  return {"qwen3", "Qwen3Config", m};
}

HfFamily qwen3_moe_family() {
  ModelSpec m = llama_form(shape(24, 2048, 32, 4, 768), 151936, 32768);
  m.qk_norm = true;
  m.experts = 128;
  m.experts_per_token = 8;
  return {"qwen3_moe", "Qwen3MoeConfig", m};
}

}  // namespace

std::optional<HfFamily> find_hf_family(std::string_view model_type) {
  for (const auto make : {gpt2_family,
                          llama_family,
                          mistral_family,
                          mixtral_family,
                          qwen2_family,
                          qwen3_family,
                          qwen3_moe_family}) {
    if (HfFamily family = make(); model_type == family.model_type) {
      return family;
    }
  }
  return std::nullopt;
}

ModelSpec hf_llama_form(std::int64_t max_position) {
  return llama_form(shape(1, 1, 1, 0, 0), 2, max_position);
}

}  // namespace lockstep
