#include "core/io/hf_config.h"

#include <algorithm>

#include "core/error.h"
#include "core/model_presets.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

// The published files, shortened to the keys that matter and a few that do not.
struct Published {
  const char* preset;
  const char* text;
};

const Published kPublished[] = {
    {"gpt2", R"({"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
      "attn_pdrop": 0.1, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024,
      "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1,
      "task_specific_params": {"text-generation": {"do_sample": true}}, "vocab_size": 50257})"},
    {"gpt2-xl", R"({"activation_function": "gelu_new", "layer_norm_epsilon": 1e-05,
      "model_type": "gpt2", "n_ctx": 1024, "n_embd": 1600, "n_head": 25, "n_layer": 48,
      "n_positions": 1024, "output_past": true, "vocab_size": 50257})"},
    {"llama-2-7b", R"({"architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
      "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 4096,
      "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
      "num_key_value_heads": 32, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
      "rope_scaling": null, "tie_word_embeddings": false, "torch_dtype": "float16",
      "vocab_size": 32000})"},
    {"llama-3.1-8b", R"({"attention_bias": false, "hidden_act": "silu", "hidden_size": 4096,
      "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false,
      "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
      "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
      "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}, "rope_theta": 500000.0,
      "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 128256})"},
    {"llama-3.2-1b", R"({"attention_bias": false, "head_dim": 64, "hidden_act": "silu",
      "hidden_size": 2048, "intermediate_size": 8192, "max_position_embeddings": 131072,
      "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32,
      "num_hidden_layers": 16, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
      "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0},
      "tie_word_embeddings": true, "dtype": "bfloat16", "vocab_size": 128256})"},
    {"mistral-7b", R"({"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
      "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
      "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
      "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": false,
      "torch_dtype": "bfloat16", "vocab_size": 32000})"},
    {"mixtral-8x7b", R"({"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
      "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32,
      "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8,
      "num_local_experts": 8, "output_router_logits": false, "rms_norm_eps": 1e-05,
      "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02, "sliding_window": null,
      "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 32000})"},
    {"qwen2.5-0.5b", R"({"hidden_act": "silu", "hidden_size": 896, "intermediate_size": 4864,
      "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2",
      "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
      "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_sliding_window": false,
      "vocab_size": 151936})"},
    {"qwen2.5-7b", R"({"hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944,
      "max_position_embeddings": 131072, "max_window_layers": 28, "model_type": "qwen2",
      "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
      "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_sliding_window": false,
      "vocab_size": 152064})"},
    {"qwen3-0.6b", R"({"attention_bias": false, "head_dim": 128, "hidden_act": "silu",
      "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960,
      "model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28,
      "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_theta": 1000000,
      "sliding_window": null, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
      "use_sliding_window": false, "vocab_size": 151936})"},
    {"qwen3-8b", R"({"attention_bias": false, "head_dim": 128, "hidden_act": "silu",
      "hidden_size": 4096, "intermediate_size": 12288, "max_position_embeddings": 40960,
      "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 36,
      "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_theta": 1000000,
      "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 151936})"},
};

ModelSpec parse(const char* text) {
  return parse_hf_config(text, "config.json").model;
}

std::string error_of(const char* text) {
  try {
    parse(text);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    return error.what();
  }
  return "";
}

bool assumed(const ModelSpec& model, const std::string& text) {
  return std::any_of(model.assumptions.begin(),
                     model.assumptions.end(),
                     [&](const std::string& line) { return line.find(text) == 0; });
}

void check_same_model(const ModelSpec& a, const ModelSpec& b) {
  CHECK(parameter_count(a) == parameter_count(b));
  CHECK(a.layers == b.layers);
  CHECK(a.hidden == b.hidden);
  CHECK(a.heads == b.heads);
  CHECK(a.kv_heads == b.kv_heads);
  CHECK(a.head_dim == b.head_dim);
  CHECK(a.intermediate == b.intermediate);
  CHECK(a.vocab == b.vocab);
  CHECK(a.max_position == b.max_position);
  CHECK(a.norm == b.norm);
  CHECK(a.activation == b.activation);
  CHECK(a.position == b.position);
  CHECK(a.tied_embeddings == b.tied_embeddings);
  CHECK(a.norm_epsilon == b.norm_epsilon);
  CHECK(a.rope_theta == b.rope_theta);
  CHECK(a.sliding_window == b.sliding_window);
  CHECK(a.experts == b.experts);
  CHECK(a.experts_per_token == b.experts_per_token);
}

}  // namespace

TEST_CASE("Published config files give the same models as the presets") {
  for (const Published& published : kPublished) {
    INFO(published.preset);
    check_same_model(parse(published.text), *find_model_preset(published.preset));
  }
}

TEST_CASE("Old and new spellings of theta and dtype are read alike") {
  const char* keys = R"("model_type": "llama", "hidden_size": 64, "num_attention_heads": 4)";
  const auto read = [&](const char* rest) {
    return parse_hf_config("{" + std::string(keys) + rest + "}", "config.json");
  };
  CHECK(read(R"(, "rope_theta": 7.0)").model.rope_theta == 7);
  CHECK(read(R"(, "rope_parameters": {"rope_theta": 7.0})").model.rope_theta == 7);
  CHECK(read(R"(, "rope_parameters": {"full_attention": {"rope_theta": 7.0}})").model.rope_theta ==
        7);
  CHECK(read(R"(, "torch_dtype": "bfloat16")").stored_dtype == DType::kBf16);
  CHECK(read(R"(, "torch_dtype": "torch.float16")").stored_dtype == DType::kFp16);
  CHECK(read(R"(, "dtype": "float32")").stored_dtype == DType::kFp32);
  CHECK_FALSE(read(R"(, "dtype": "auto")").stored_dtype.has_value());
  CHECK_FALSE(read("").stored_dtype.has_value());
}

TEST_CASE("null means what Python's None means for that key") {
  const ModelSpec llama = parse(R"({"model_type": "llama", "num_key_value_heads": null,
                                    "num_attention_heads": 8, "hidden_size": 64,
                                    "head_dim": null})");
  CHECK(llama.kv_heads == 8);
  CHECK(llama.head_dim == 8);
  const ModelSpec gpt2 = parse(R"({"model_type": "gpt2", "n_inner": null, "n_embd": 24})");
  CHECK(gpt2.intermediate == 96);
  CHECK(parse(R"({"model_type": "mistral", "sliding_window": null})").sliding_window == 0);
  const ModelSpec absent = parse(R"({"model_type": "mistral"})");
  CHECK(absent.sliding_window == 4096);
  CHECK(assumed(absent, "sliding_window: 4096, the default of MistralConfig"));
}

TEST_CASE("A file with only a model_type is the transformers class's default model, said so") {
  // LlamaConfig() is Llama-7B with 2048 positions.
  const ModelSpec llama = parse(R"({"model_type": "llama"})");
  CHECK(parameter_count(llama) == 6'738'415'616);
  CHECK(llama.max_position == 2048);
  CHECK(assumed(llama, "hidden_size: 4096, the default of LlamaConfig"));
  CHECK(assumed(llama, "tie_word_embeddings: false, the default of LlamaConfig"));
  const ModelSpec gpt2 = parse(R"({"model_type": "gpt2"})");
  CHECK(parameter_count(gpt2) == 124'439'808);
  // Qwen3-30B-A3B's card says 30.5 B parameters, 3.3 B active.
  const ModelSpec moe = parse(R"({"model_type": "qwen3_moe", "hidden_size": 2048,
      "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
      "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
      "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1,
      "mlp_only_layers": [], "vocab_size": 151936, "tie_word_embeddings": false})");
  CHECK(parameter_count(moe) == 30'532'122'624);
  CHECK(static_cast<double>(active_parameter_count(moe)) == Approx(3.3e9).epsilon(0.02));
}

TEST_CASE("A complete published file leaves nothing to assume but what its class hard-codes") {
  CHECK(parse(kPublished[5].text).assumptions.empty());  // Mistral
  const ModelSpec llama31 = parse(kPublished[3].text);
  REQUIRE(llama31.assumptions.size() == 1);
  CHECK(assumed(llama31, "rotary scaling \"llama3\" is not applied"));
}

TEST_CASE("An unknown model_type is read by the generic keys and lists what was assumed") {
  const ModelSpec model = parse(R"({"model_type": "olmo9", "hidden_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
      "intermediate_size": 128, "hidden_act": "silu", "tie_word_embeddings": false})");
  CHECK(model.layers == 2);
  CHECK(model.gated_mlp());
  CHECK(assumed(model, "model_type \"olmo9\" is unknown: read by the generic keys"));
  CHECK(assumed(model, "max_position_embeddings: 2048, as the file does not say"));
  const ModelSpec old = parse(R"({"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100,
      "n_positions": 32, "layer_norm_epsilon": 1e-5, "activation_function": "gelu"})");
  CHECK(old.norm == NormKind::kLayerNorm);
  CHECK(old.position == PositionKind::kLearned);
  CHECK(old.intermediate == 256);
  CHECK(assumed(old, "model_type is absent"));
}

TEST_CASE("Without a known model_type, sizes cannot be assumed") {
  const std::string error = error_of("{}");
  CHECK(error.find("[config] config.json: hidden_size: is missing") == 0);
  CHECK(error.find("num_hidden_layers") != std::string::npos);
  CHECK(error.find("vocab_size") != std::string::npos);
  CHECK(error_of(R"({"model_type": "gemma9", "text_config": {}})").find("several modalities") !=
        std::string::npos);
}

TEST_CASE("Wrong types and impossible sizes are one line with every place") {
  const std::string error = error_of(
      "{\"model_type\": \"llama\",\n \"hidden_size\": \"big\",\n"
      " \"tie_word_embeddings\": 1, \"num_hidden_layers\": 1.5}");
  CHECK(error.find("config.json:2:17: hidden_size: must be a whole number, found the string "
                   "\"big\"") != std::string::npos);
  CHECK(error.find("config.json:3:25: tie_word_embeddings: must be true or false") !=
        std::string::npos);
  CHECK(error.find("num_hidden_layers: must be a whole number, found the number 1.5") !=
        std::string::npos);
  CHECK(error_of(R"({"model_type": "gpt2", "n_head": 0})").find("model.heads: must be from 1") !=
        std::string::npos);
  CHECK(error_of(R"({"model_type": "gpt2", "n_layer": 1000000000})").find("model.layers") !=
        std::string::npos);
  CHECK(error_of(R"({"model_type": "gpt2", "n_embd": 770})").find("does not divide hidden_size") !=
        std::string::npos);
  CHECK(error_of("[1, 2]").find("config.json:1:1: config: must be an object, found a list") !=
        std::string::npos);
}

TEST_CASE("A model is named by the file, else by its folder") {
  const char* text = R"({"model_type": "gpt2"})";
  CHECK(parse_hf_config(text, "models/my-gpt/config.json").model.name == "my-gpt");
  CHECK(parse_hf_config(text, "config.json").model.name == "config");
  CHECK(parse(R"({"model_type": "gpt2", "_name_or_path": "org/name"})").name == "org/name");
}
