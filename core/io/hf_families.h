// The model classes of Hugging Face transformers that Lockstep knows by name: what each takes for
// keys that its config.json leaves out, and what its code hard-codes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/model.h"

namespace lockstep {

struct HfFamily {
  const char* model_type = "";
  const char* config_class = "PretrainedConfig";  ///< named in assumptions
  /// kv_heads 0 means "as many as heads", head_dim 0 "hidden / heads", intermediate 0 "4 x hidden".
  ModelSpec defaults;
  bool known = true;
};

/// The class of this model_type: gpt2, llama, mistral, mixtral, qwen2, qwen3, qwen3_moe; or none.
std::optional<HfFamily> find_hf_family(std::string_view model_type);

/// The form of most other models: RMSNorm, SwiGLU, rotary positions, no biases, own head matrix;
/// all sizes unknown.
ModelSpec hf_llama_form(std::int64_t max_position);

}  // namespace lockstep
