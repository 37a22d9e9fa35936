// Safetensors: a file of named tensors: 8 bytes of header length, a JSON header, raw little-endian
// data (huggingface.co/docs/safetensors, "Format"). Written whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace lockstep::exec {

struct NamedTensor {
  DType dtype = DType::kFp32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

using NamedTensors = std::map<std::string, NamedTensor>;

/// NotSupportedError if the file cannot be written; nothing is left then.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors);

/// BadInputError with file and place for what is truncated, overlapping or of an unknown type.
NamedTensors read_safetensors(const std::filesystem::path& path);

}  // namespace lockstep::exec
