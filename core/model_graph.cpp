#include "core/model_graph.h"

#include <algorithm>

#include "core/check.h"
#include "core/layout.h"
#include "core/model_templates.h"

namespace lockstep {
namespace {

void add_segment(ModelGraph& graph, std::int32_t form, std::int32_t layer) {
  const SegmentTemplate& segment_form = graph.templates[static_cast<std::size_t>(form)];
  const auto index = static_cast<std::int32_t>(graph.segments.size());
  graph.segments.push_back({form, layer, graph.module_count(), graph.parameter_total()});
  graph.segment_of_module.insert(graph.segment_of_module.end(), segment_form.modules.size(), index);
  for (std::size_t p = 0; p < segment_form.parameters.size(); ++p) {
    graph.parameters.push_back({index, static_cast<std::int32_t>(p)});
  }
}

std::string prefix_of(const ModelGraph& graph, const Segment& segment) {
  const std::string& name = graph.form(segment).name;
  if (segment.layer < 0) {
    return name;
  }
  return name + std::to_string(segment.layer) + ".";
}

}  // namespace

std::string_view name_of(ModuleKind kind) {
  static constexpr std::string_view kNames[] = {"embedding",
                                                "position",
                                                "norm",
                                                "linear",
                                                "rope",
                                                "head_norm",
                                                "attention",
                                                "activation",
                                                "dropout",
                                                "residual",
                                                "router",
                                                "dispatch",
                                                "combine",
                                                "batch_norm",
                                                "loss"};
  return kNames[static_cast<std::size_t>(kind)];
}

const ModuleDef& ModelGraph::module(std::uint32_t id) const {
  const Segment& segment = segment_of(id);
  return form(segment).modules[id - static_cast<std::uint32_t>(segment.first_module)];
}

const ParameterDef& ModelGraph::parameter(std::int32_t id) const {
  const ParameterRef& ref = parameters[static_cast<std::size_t>(id)];
  return form(segments[static_cast<std::size_t>(ref.segment)])
      .parameters[static_cast<std::size_t>(ref.index)];
}

std::string ModelGraph::parameter_name(std::int32_t id) const {
  const ParameterRef& ref = parameters[static_cast<std::size_t>(id)];
  return prefix_of(*this, segments[static_cast<std::size_t>(ref.segment)]) + parameter(id).suffix;
}

std::string ModelGraph::module_name(std::uint32_t id) const {
  if (id >= segment_of_module.size()) {
    return "-";
  }
  return prefix_of(*this, segment_of(id)) + module(id).name;
}

std::string ModelGraph::segment_name(std::int32_t index) const {
  const Segment& segment = segments[static_cast<std::size_t>(index)];
  if (segment.layer < 0) {
    return index == 0 ? "embedding" : "head";
  }
  std::string name = prefix_of(*this, segment);
  name.pop_back();  // the dot
  return name;
}

std::int64_t ModelGraph::parameter_count() const {
  std::int64_t count = 0;
  for (std::int32_t id = 0; id < parameter_total(); ++id) {
    const ParameterDef& definition = parameter(id);
    count += definition.tied ? 0 : definition.rows * definition.columns;
  }
  return count;
}

std::int64_t elements_of(const TensorDef& tensor, const ModelSpec& model, const LocalSizes& sizes) {
  const std::int64_t rows = tensor.per_token;
  switch (tensor.region) {
    case Region::kTokens:
      return sizes.region_tokens() * rows * tensor.width;
    case Region::kAllTokens:
      return sizes.tokens() * rows * tensor.width;
    case Region::kWidth:
      return sizes.tokens() * rows * ceil_divide(tensor.width, sizes.tensor);
    case Region::kScores:
      return sizes.batch * (model.heads / sizes.tensor) * sizes.seq * sizes.seq;
    case Region::kHeadRows:
      return sizes.batch * (model.heads / sizes.tensor) * sizes.seq;
    case Region::kVector:
      return tensor.width;
  }
  return 0;
}

DType dtype_of(TensorType type, const TrainingSpec& training) {
  switch (type) {
    case TensorType::kActivation:
      return training.activation_dtype();
    case TensorType::kFp32:
      return training.precision == Precision::kFp64 ? DType::kFp64 : DType::kFp32;
    case TensorType::kMask:
      return DType::kUint8;
    case TensorType::kTokenIds:
      return DType::kInt64;
  }
  return DType::kFp32;
}

std::int64_t local_rows(const ParameterDef& parameter, std::int64_t tensor) {
  return parameter.cut == ParameterCut::kRows ? ceil_divide(parameter.rows, tensor)
                                              : parameter.rows;
}

std::int64_t local_columns(const ParameterDef& parameter, std::int64_t tensor) {
  return parameter.cut == ParameterCut::kColumns ? parameter.columns / tensor : parameter.columns;
}

std::int64_t valid_local_rows(const ParameterDef& parameter,
                              std::int64_t tensor,
                              std::int64_t coordinate) {
  const std::int64_t rows = local_rows(parameter, tensor);
  const std::int64_t first = parameter.cut == ParameterCut::kRows ? coordinate * rows : 0;
  return std::clamp<std::int64_t>(parameter.rows - first, 0, rows);
}

std::shared_ptr<const ModelGraph> build_model_graph(const ModelSpec& model,
                                                    const TrainingSpec& training) {
  auto graph = std::make_shared<ModelGraph>();
  graph->model = model;
  graph->attention = training.attention;
  graph->dropout = training.dropout > 0.0;
  if (model.family == ModelFamily::kMlp) {
    graph->templates = mlp_templates(model);
    for (std::size_t layer = 0; layer < graph->templates.size(); ++layer) {
      add_segment(*graph, static_cast<std::int32_t>(layer), static_cast<std::int32_t>(layer));
    }
  } else {
    graph->templates = transformer_templates(model, training.attention, graph->dropout);
    add_segment(*graph, 0, -1);
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      add_segment(*graph, 1, static_cast<std::int32_t>(layer));
    }
    add_segment(*graph, 2, -1);
  }
  return graph;
}

}  // namespace lockstep
