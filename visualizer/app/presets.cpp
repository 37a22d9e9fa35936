#include "visualizer/app/presets.h"

#include "core/io/scenario_io.h"

namespace lockstep::app {
namespace {

using ui::S;

constexpr std::string_view kDdp = R"({"schema_version": 1, "name": "ddp",
  "model": "gpt2", "cluster": "a10g-pcie",
  "training": {"seq_len": 1024, "micro_batch": 4},
  "strategy": {"data": {"kind": "ddp", "degree": 4}}})";
constexpr std::string_view kZero = R"({"schema_version": 1, "name": "zero1",
  "model": "gpt2-xl", "cluster": "dgx-a100-40gb",
  "training": {"seq_len": 1024, "micro_batch": 2},
  "strategy": {"data": {"kind": "zero1", "degree": 8}}})";
constexpr std::string_view kFsdp = R"({"schema_version": 1, "name": "fsdp",
  "model": "llama-3.1-8b", "cluster": "dgx-h100",
  "training": {"seq_len": 4096},
  "strategy": {"data": {"kind": "fsdp", "degree": 8}}})";
constexpr std::string_view kTensor = R"({"schema_version": 1, "name": "tensor",
  "model": "llama-3.1-8b", "cluster": "dgx-h100",
  "training": {"seq_len": 4096},
  "strategy": {"tensor": {"degree": 8, "sequence_parallel": true}}})";
constexpr std::string_view kPipeline = R"({"schema_version": 1, "name": "pipeline",
  "model": "gpt2-xl", "cluster": "dgx-a100-80gb",
  "training": {"seq_len": 1024, "micro_batch": 2, "accumulate": 8},
  "strategy": {"pipeline": {"degree": 4, "schedule": "1f1b"}}})";
constexpr std::string_view kMix = R"({"schema_version": 1, "name": "mix",
  "model": "llama-3.1-70b", "cluster": "dgx-h100",
  "training": {"seq_len": 4096, "accumulate": 8},
  "strategy": {"data": {"kind": "zero1", "degree": 2},
               "tensor": {"degree": 8, "sequence_parallel": true},
               "pipeline": {"degree": 4, "schedule": "1f1b"}}})";
constexpr std::string_view kLaptop = R"({"schema_version": 1, "name": "laptop",
  "model": "gpt2-tiny", "cluster": "cpu-laptop",
  "training": {"precision": "fp32", "micro_batch": 2},
  "strategy": {"data": {"kind": "ddp", "degree": 2}}})";

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all{
      {"ddp", S::kPresetDdp, S::kPresetDdpNote, kDdp},
      {"zero1", S::kPresetZero, S::kPresetZeroNote, kZero},
      {"fsdp", S::kPresetFsdp, S::kPresetFsdpNote, kFsdp},
      {"tensor", S::kPresetTensor, S::kPresetTensorNote, kTensor},
      {"pipeline", S::kPresetPipeline, S::kPresetPipelineNote, kPipeline},
      {"mix", S::kPresetMix, S::kPresetMixNote, kMix},
      {"laptop", S::kPresetLaptop, S::kPresetLaptopNote, kLaptop},
  };
  return all;
}

const Preset* find_preset(std::string_view id) {
  for (const Preset& preset : presets()) {
    if (preset.id == id) {
      return &preset;
    }
  }
  return nullptr;
}

Scenario preset_scenario(const Preset& preset) {
  return parse_scenario(preset.json, preset.id);
}

}  // namespace lockstep::app
