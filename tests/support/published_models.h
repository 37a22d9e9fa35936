// How many parameters published models have.
#pragma once

#include <cstdint>

namespace lockstep::test {

struct PublishedModel {
  const char* name;
  std::int64_t parameters;
};

/// Sum of the sizes of all tensors in the published safetensors files (tied heads are not stored).
inline constexpr PublishedModel kPublishedModels[] = {
    {"gpt2", 124'439'808},
    {"gpt2-medium", 354'823'168},
    {"gpt2-large", 774'030'080},
    {"gpt2-xl", 1'557'611'200},
    {"llama-2-7b", 6'738'415'616},
    {"llama-2-13b", 13'015'864'320},
    {"llama-2-70b", 68'976'648'192},
    {"llama-3.1-8b", 8'030'261'248},
    {"llama-3.1-70b", 70'553'706'496},
    {"llama-3.1-405b", 405'853'388'800},
    {"llama-3.2-1b", 1'235'814'400},
    {"mistral-7b", 7'241'732'096},
    {"mixtral-8x7b", 46'702'792'704},
    {"qwen2.5-0.5b", 494'032'768},
    {"qwen2.5-7b", 7'615'616'512},
    {"qwen3-0.6b", 596'049'920},
    {"qwen3-8b", 8'190'735'360},
};

}  // namespace lockstep::test
