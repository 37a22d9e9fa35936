// Hugging Face config.json -> ModelSpec. Knows model_type gpt2, llama, mistral, mixtral, qwen2 and
// qwen3, old and new spellings of their keys, and what their transformers classes take for absent
// keys; any other model_type is read by the generic keys. Whatever the file did not say stands in
// ModelSpec::assumptions. Nothing is downloaded, no code is run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "core/model.h"

namespace lockstep {

struct HfConfig {
  ModelSpec model;
  std::optional<DType> stored_dtype;  ///< "dtype" or "torch_dtype": of the published weights
};

/// Reads a file; the model is named after the folder of the file where the file has no name of its
/// own. BadInputError with all problems.
HfConfig load_hf_config(const std::string& path);

/// Reads text; `source` is for messages.
HfConfig parse_hf_config(std::string_view text, std::string_view source);

}  // namespace lockstep
