// Segment templates of the two model families; used by build_model_graph only.
#pragma once

#include <vector>

#include "core/model_graph.h"

namespace lockstep {

/// Embedding, block, head (in this order) of a transformer.
std::vector<SegmentTemplate> transformer_templates(const ModelSpec& model,
                                                   AttentionKind attention,
                                                   bool dropout);
/// One template per layer of a multi-layer perceptron; the last one ends in the loss.
std::vector<SegmentTemplate> mlp_templates(const ModelSpec& model);

/// Adds tensors, parameters and modules to a template and marks what backward reads.
class TemplateBuilder {
 public:
  explicit TemplateBuilder(std::string name) { form_.name = std::move(name); }

  std::int8_t tensor(const char* name,
                     Region region,
                     std::int64_t width,
                     TensorType type = TensorType::kActivation);
  TensorDef& at(std::int8_t tensor) { return form_.tensors[static_cast<std::size_t>(tensor)]; }
  std::int16_t parameter(ParameterDef parameter);
  ParameterDef& at_parameter(std::int16_t id) {
    return form_.parameters[static_cast<std::size_t>(id)];
  }
  ModuleDef& module(ModuleKind kind,
                    const char* name,
                    std::vector<std::int8_t> inputs,
                    std::vector<std::int8_t> outputs,
                    std::vector<std::int16_t> parameters = {});
  SegmentTemplate finish(std::int8_t input, std::int8_t output);

 private:
  SegmentTemplate form_;
};

}  // namespace lockstep
