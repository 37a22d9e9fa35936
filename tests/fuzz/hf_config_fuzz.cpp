// Any bytes as a Hugging Face config.json: refused with lockstep::BadInputError, or a valid model
// whose parameters can be counted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/io/hf_config.h"
#include "core/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const lockstep::ModelSpec model = lockstep::parse_hf_config(text, "dir/config.json").model;
    lockstep::Problems problems;
    validate(model, problems);
    const std::int64_t parameters = parameter_count(model);
    const bool sane = parameters > 0 && parameters <= lockstep::kMaxParameters &&
                      active_parameter_count(model) <= parameters;
    if (!problems.empty() || !sane) {
      std::abort();
    }
  } catch (const lockstep::BadInputError&) {
  }
  return 0;
}
