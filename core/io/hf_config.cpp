#include "core/io/hf_config.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/hf_families.h"
#include "core/io/json_reader.h"
#include "core/limits.h"
#include "core/names.h"
#include "core/problems.h"

namespace lockstep {
namespace {

constexpr const char* kComponent = "config";

using Keys = std::initializer_list<const char*>;  // spellings of one setting, the usual one first

class ConfigReader {
 public:
  ConfigReader(const JsonValue& root, std::string source)
      : root_(root), source_(std::move(source)) {}

  HfConfig read() {
    if (root_.kind != JsonValue::Kind::kObject) {
      add(root_, "config", "must be an object, found " + root_.description());
      throw_problems();
    }
    family_ = find_family();
    if (!family_.known) {
      guess_form();
    }
    read_sizes();
    read_head_dim();
    read_form();
    read_experts();
    read_rope();
    read_sliding_window();
    HfConfig config;
    config.stored_dtype = read_dtype();
    note_what_is_left_out();
    model_.name = read_name();
    throw_problems();
    validate(model_, problems_);
    throw_problems();
    config.model = std::move(model_);
    return config;
  }

 private:
  // --- Access to keys ----------------------------------------------------------------------------

  void add(const JsonValue& json, const char* key, std::string message) {
    problems_.add(fmt::format("{}:{}:{}: {}", source_, json.line, json.column, key),
                  std::move(message));
  }

  void throw_problems() const {
    if (problems_.empty()) {
      return;
    }
    const std::string text = problems_.one_line();
    const bool placed = text.compare(0, source_.size(), source_) == 0;
    throw BadInputError(kComponent, placed ? text : source_ + ": " + text);
  }

  void assume(std::string text) { model_.assumptions.push_back(std::move(text)); }

  void assume_default(const char* key, const std::string& value) {
    assume(fmt::format("{}: {}, the default of {}", key, value, family_.config_class));
  }

  /// The first spelling that is there and not null, as Python's None means "not given".
  const JsonValue* find(Keys keys, const char** spelling = nullptr) const {
    for (const char* key : keys) {
      const JsonValue* json = root_.find(key);
      if (json != nullptr && json->kind != JsonValue::Kind::kNull) {
        if (spelling != nullptr) {
          *spelling = key;
        }
        return json;
      }
    }
    return nullptr;
  }

  bool given_as_null(Keys keys) const {
    for (const char* key : keys) {
      if (root_.find(key) != nullptr) {
        return true;
      }
    }
    return false;
  }

  std::optional<std::int64_t> whole_number(Keys keys) {
    const char* spelling = "";
    const JsonValue* json = find(keys, &spelling);
    if (json == nullptr) {
      return std::nullopt;
    }
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (json->kind == JsonValue::Kind::kInteger) {
      return json->integer;
    }
    if (json->kind == JsonValue::Kind::kReal && std::floor(json->real) == json->real &&
        std::fabs(json->real) <= kExact) {
      return static_cast<std::int64_t>(json->real);
    }
    add(*json, spelling, "must be a whole number, found " + json->description());
    return 1;
  }

  std::int64_t whole_number(Keys keys, std::int64_t fallback) {
    if (const std::optional<std::int64_t> value = whole_number(keys)) {
      return *value;
    }
    if (!family_.known) {
      problems_.add(fmt::format("{}: {}", source_, *keys.begin()),
                    "is missing, and the model_type is not one whose defaults are known");
      return 1;
    }
    assume_default(*keys.begin(), std::to_string(fallback));
    return fallback;
  }

  double number(Keys keys, double fallback) {
    const char* spelling = "";
    const JsonValue* json = find(keys, &spelling);
    if (json == nullptr) {
      assume_default(*keys.begin(), fmt::format("{}", fallback));
      return fallback;
    }
    if (json->kind != JsonValue::Kind::kInteger && json->kind != JsonValue::Kind::kReal) {
      add(*json, spelling, "must be a number, found " + json->description());
    }
    return json->real;
  }

  std::optional<bool> flag(Keys keys) {
    const char* spelling = "";
    const JsonValue* json = find(keys, &spelling);
    if (json == nullptr) {
      return std::nullopt;
    }
    if (json->kind != JsonValue::Kind::kBool) {
      add(*json, spelling, "must be true or false, found " + json->description());
    }
    return json->boolean;
  }

  bool flag(Keys keys, bool fallback) {
    if (const std::optional<bool> value = flag(keys)) {
      return *value;
    }
    assume_default(*keys.begin(), fallback ? "true" : "false");
    return fallback;
  }

  std::optional<std::string> word(Keys keys) {
    const char* spelling = "";
    const JsonValue* json = find(keys, &spelling);
    if (json == nullptr) {
      return std::nullopt;
    }
    if (json->kind != JsonValue::Kind::kString) {
      add(*json, spelling, "must be a string, found " + json->description());
    }
    return json->string;
  }

  // --- The parts of a config ---------------------------------------------------------------------

  HfFamily find_family() {
    const std::string model_type = word({"model_type"}).value_or("");
    if (std::optional<HfFamily> family = find_hf_family(model_type)) {
      model_ = family->defaults;
      return *std::move(family);
    }
    if (find({"text_config"}) != nullptr) {
      add(*find({"text_config"}),
          "text_config",
          "is a part of a model with several modalities: save it as a config.json of its own");
      throw_problems();
    }
    assume(model_type.empty() ? "model_type is absent: read by the generic keys"
                              : fmt::format("model_type {} is unknown: read by the generic keys",
                                            in_quotes(model_type)));
    return {"", "PretrainedConfig", {}, false};
  }

  /// An unknown model_type: the keys it has tell what form it probably has.
  void guess_form() {
    std::vector<std::string> assumptions = std::move(model_.assumptions);
    model_ = hf_llama_form(2048);
    model_.tied_embeddings = true;
    model_.assumptions = std::move(assumptions);
    const bool layer_norm =
        find({"layer_norm_epsilon", "layer_norm_eps", "layernorm_epsilon"}) != nullptr &&
        find({"rms_norm_eps"}) == nullptr;
    model_.norm = layer_norm ? NormKind::kLayerNorm : NormKind::kRmsNorm;
    assume(fmt::format("norm: {}, as its epsilon is {}",
                       name_of(model_.norm),
                       layer_norm ? "called layer_norm" : "not called layer_norm"));
    const std::string act = activation_word();
    model_.activation = act.find("gelu") != std::string::npos   ? ActivationKind::kGelu
                        : act.find("relu") != std::string::npos ? ActivationKind::kRelu
                                                                : ActivationKind::kSwiGlu;
    assume(fmt::format("MLP: {}, as the activation is {}",
                       model_.gated_mlp() ? "gated, three matrices" : "two matrices",
                       act.empty() ? std::string("not named") : in_quotes(act)));
    const bool rope = find({"rope_theta", "rope_parameters", "rope_scaling"}) != nullptr;
    const bool learned = !rope && find({"n_positions", "n_ctx"}) != nullptr;
    model_.position = learned ? PositionKind::kLearned : PositionKind::kRope;
    assume(fmt::format("positions: {}", name_of(model_.position)));
  }

  std::string activation_word() {
    return word({"hidden_act", "activation_function", "hidden_activation"}).value_or("");
  }

  void read_sizes() {
    const ModelSpec& d = family_.defaults;
    model_.hidden = whole_number({"hidden_size", "n_embd", "d_model"}, d.hidden);
    model_.layers =
        whole_number({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, d.layers);
    model_.heads = whole_number({"num_attention_heads", "n_head", "n_heads"}, d.heads);
    model_.vocab = whole_number({"vocab_size"}, d.vocab);
    read_kv_heads();
    read_intermediate();
    const Keys positions = {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"};
    if (const std::optional<std::int64_t> value = whole_number(positions)) {
      model_.max_position = *value;
    } else {
      const std::int64_t fallback = family_.known ? d.max_position : 2048;
      model_.max_position = fallback;
      assume_or_guess("max_position_embeddings", fallback);
    }
  }

  void assume_or_guess(const char* key, std::int64_t value) {
    if (family_.known) {
      assume_default(key, std::to_string(value));
    } else {
      assume(fmt::format("{}: {}, as the file does not say", key, value));
    }
  }

  void read_kv_heads() {
    const Keys keys = {"num_key_value_heads", "num_kv_heads", "n_head_kv"};
    const std::int64_t fallback = family_.known ? family_.defaults.kv_heads : 0;
    if (const std::optional<std::int64_t> value = whole_number(keys)) {
      model_.kv_heads = *value;
    } else if (fallback == 0 || given_as_null(keys)) {
      model_.kv_heads = model_.heads;  // null or absent: multi-head attention
    } else {
      model_.kv_heads = fallback;
      assume_default("num_key_value_heads", std::to_string(fallback));
    }
  }

  void read_intermediate() {
    const bool experts = find({"moe_intermediate_size"}) != nullptr;
    const Keys dense_keys = {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff"};
    const Keys expert_keys = {"moe_intermediate_size"};
    const Keys keys = experts ? expert_keys : dense_keys;
    const std::int64_t fallback = family_.known ? family_.defaults.intermediate : 0;
    if (const std::optional<std::int64_t> value = whole_number(keys)) {
      model_.intermediate = *value;
      return;
    }
    const bool four_times = fallback == 0;
    model_.intermediate =
        four_times ? saturating_product({4, std::max<std::int64_t>(model_.hidden, 0)}) : fallback;
    if (!four_times || !given_as_null(keys)) {  // n_inner null says "4 x hidden" by itself
      assume_or_guess(four_times ? "n_inner" : *keys.begin(), model_.intermediate);
    }
  }

  void read_head_dim() {
    if (const std::optional<std::int64_t> value = whole_number({"head_dim"})) {
      model_.head_dim = *value;
      return;
    }
    if (family_.defaults.head_dim > 0 && family_.known && !given_as_null({"head_dim"})) {
      model_.head_dim = family_.defaults.head_dim;
      assume_default("head_dim", std::to_string(model_.head_dim));
      return;
    }
    const bool divides = model_.heads > 0 && model_.hidden % model_.heads == 0;
    model_.head_dim = divides ? model_.hidden / model_.heads : 1;
    if (model_.heads > 0 && !divides && problems_.empty()) {
      problems_.add(source_ + ": num_attention_heads",
                    fmt::format("{} does not divide hidden_size {}, and head_dim is absent",
                                model_.heads,
                                model_.hidden));
    }
  }

  void read_form() {
    const bool gpt2 = model_.norm == NormKind::kLayerNorm;
    const Keys gpt2_epsilon = {"layer_norm_epsilon", "layer_norm_eps", "layernorm_epsilon"};
    const Keys rms_epsilon = {"rms_norm_eps", "norm_eps", "layer_norm_epsilon"};
    model_.norm_epsilon = number(gpt2 ? gpt2_epsilon : rms_epsilon, model_.norm_epsilon);
    model_.tied_embeddings = flag({"tie_word_embeddings"}, model_.tied_embeddings);
    read_activation();
    if (const std::optional<bool> bias = flag({"attention_bias"})) {
      model_.qkv_bias = model_.output_bias = *bias;
    }
    if (const std::optional<bool> bias = flag({"mlp_bias"})) {
      model_.mlp_bias = *bias;
    }
  }

  void read_activation() {
    const std::string act = activation_word();
    if (!family_.known || act.empty()) {
      return;  // guessed already, or the class default: gelu_new for GPT-2, silu for the others
    }
    const bool gelu = act.find("gelu") != std::string::npos;
    const bool fits = model_.gated_mlp() ? act == "silu" || act == "swish" : gelu;
    if (!model_.gated_mlp() && act == "relu") {
      model_.activation = ActivationKind::kRelu;
    } else if (!fits) {
      assume(fmt::format("activation {} is treated as {}: the shapes are the same",
                         in_quotes(act),
                         name_of(model_.activation)));
    }
  }

  void read_experts() {
    const Keys count = {"num_local_experts", "num_experts", "n_routed_experts"};
    const Keys per_token = {"num_experts_per_tok", "num_experts_per_token", "moe_topk"};
    const bool moe = model_.is_moe() || (!family_.known && find(count) != nullptr);
    if (!moe) {
      return;
    }
    model_.experts = whole_number(count, family_.defaults.experts);
    model_.experts_per_token = whole_number(per_token, family_.defaults.experts_per_token);
    if (!family_.known && model_.experts == 0) {
      model_.experts_per_token = 0;
    }
    if (find({"n_shared_experts", "shared_expert_intermediate_size"}) != nullptr) {
      assume("shared experts are left out: only routed experts are modelled");
    }
    const std::optional<std::int64_t> step = whole_number({"decoder_sparse_step"});
    const JsonValue* dense_layers = find({"mlp_only_layers"});
    if (step.value_or(1) != 1 || (dense_layers != nullptr && !dense_layers->items.empty()) ||
        find({"first_k_dense_replace"}) != nullptr) {
      assume("every layer is taken as a mixture of experts, though some are dense");
    }
  }

  /// New files: "rope_parameters": {"rope_theta": ..}, maybe once per kind of layer. Old files:
  /// "rope_theta" beside the rest and "rope_scaling".
  void read_rope() {
    if (model_.position != PositionKind::kRope) {
      return;
    }
    const JsonValue* parameters = find({"rope_parameters"});
    if (parameters != nullptr && parameters->find("full_attention") != nullptr) {
      parameters = parameters->find("full_attention");
    }
    const JsonValue* theta = parameters == nullptr ? nullptr : parameters->find("rope_theta");
    if (theta != nullptr) {
      if (theta->kind != JsonValue::Kind::kInteger && theta->kind != JsonValue::Kind::kReal) {
        add(*theta,
            "rope_parameters.rope_theta",
            "must be a number, found " + theta->description());
      }
      model_.rope_theta = theta->real;
    } else {
      model_.rope_theta = number({"rope_theta"}, model_.rope_theta);
    }
    const JsonValue* scaling = parameters != nullptr ? parameters : find({"rope_scaling"});
    const JsonValue* type = scaling == nullptr ? nullptr : scaling->find("rope_type");
    type = type == nullptr && scaling != nullptr ? scaling->find("type") : type;
    if (type != nullptr && type->string != "default") {
      assume(fmt::format("rotary scaling {} is not applied: it changes angles, not sizes",
                         in_quotes(type->string)));
    }
  }

  void read_sliding_window() {
    const bool qwen = family_.known && std::string_view(family_.model_type).substr(0, 4) == "qwen";
    if (qwen && !flag({"use_sliding_window"}).value_or(false)) {
      return;  // sliding_window is ignored by the class then
    }
    const Keys keys = {"sliding_window"};
    if (const std::optional<std::int64_t> value = whole_number(keys)) {
      model_.sliding_window = *value;
    } else if (given_as_null(keys)) {
      model_.sliding_window = 0;
    } else if (model_.sliding_window > 0) {
      assume_default("sliding_window", std::to_string(model_.sliding_window));
    }
    if (model_.sliding_window > 0 && (qwen || mixes_layer_types())) {
      model_.sliding_window = 0;
      assume("full attention in every layer, though some have a sliding window");
    }
  }

  bool mixes_layer_types() const {
    const JsonValue* types = find({"layer_types"});
    if (types == nullptr) {
      return false;
    }
    for (const JsonValue& type : types->items) {
      if (type.string != "sliding_attention") {
        return true;
      }
    }
    return false;
  }

  std::optional<DType> read_dtype() {
    std::string text = word({"dtype", "torch_dtype"}).value_or("");
    constexpr std::string_view kPrefix = "torch.";
    if (text.compare(0, kPrefix.size(), kPrefix) == 0) {
      text.erase(0, kPrefix.size());
    }
    constexpr std::pair<std::string_view, DType> kNames[] = {{"float64", DType::kFp64},
                                                             {"float32", DType::kFp32},
                                                             {"bfloat16", DType::kBf16},
                                                             {"float16", DType::kFp16}};
    for (const auto& [name, dtype] : kNames) {
      if (name == text) {
        return dtype;
      }
    }
    return std::nullopt;
  }

  void note_what_is_left_out() {
    if (find({"quantization_config"}) != nullptr) {
      assume("quantization_config is left out: training.precision decides the storage");
    }
    if (flag({"add_cross_attention"}).value_or(false)) {
      assume("cross-attention is left out: a decoder by itself is modelled");
    }
  }

  std::string read_name() {
    const std::string name = word({"_name_or_path"}).value_or("");
    if (!name.empty()) {
      return printable(name, 100);
    }
    const std::string folder = std::filesystem::path(source_).parent_path().filename().string();
    return folder.empty() || folder == "." || folder == ".." ? "config" : folder;
  }

  const JsonValue& root_;
  std::string source_;
  HfFamily family_;
  ModelSpec model_;
  Problems problems_;
};

}  // namespace

HfConfig parse_hf_config(std::string_view text, std::string_view source) {
  const JsonValue root = parse_json(text, source, kComponent);
  return ConfigReader(root, printable(source, 200)).read();
}

HfConfig load_hf_config(const std::string& path) {
  return parse_hf_config(read_text_file(path, kComponent), path);
}

}  // namespace lockstep
