#include "core/planner/norm_layout.h"

namespace lockstep {

ParameterExtent local_extent(const PlannerContext& context, std::int32_t parameter) {
  const ParameterDef& definition = context.graph->parameter(parameter);
  ParameterExtent extent;
  extent.parameter = parameter;
  extent.rows = local_rows(definition, context.tensor());
  extent.row_elements = local_columns(definition, context.tensor());
  return extent;
}

void mark_norm_axes(const PlannerContext& context, const StageLayout& stage, Layout& layout) {
  for (LayoutEntry& entry : layout.entries) {
    const ParameterDef& definition = context.graph->parameter(entry.parameter);
    const bool copy = definition.tied && stage.tied_across_stages;
    const bool replicated = definition.cut == ParameterCut::kNone && context.tensor() > 1;
    entry.norm_axes = copy ? kNotInNorm : replicated ? mask_of(Axis::kTensor) : std::uint8_t{0};
  }
}

std::uint16_t whole_layout(PlanBuilder& tables,
                           const PlannerContext& context,
                           const StageLayout& stage,
                           std::int32_t parameter) {
  Layout layout;
  const ParameterExtent extent = local_extent(context, parameter);
  bucket_layout({&extent, 1}, layout);
  mark_norm_axes(context, stage, layout);
  return tables.layout(layout);
}

}  // namespace lockstep
