// Layouts of parameters as one rank of the mesh sees them: tensor-parallel local sizes, and for
// each entry the axes on which only coordinate 0 counts in the global gradient norm.
#pragma once

#include "core/layout.h"
#include "core/planner/context.h"
#include "core/planner/stage_layout.h"

namespace lockstep {

/// Sizes of a parameter on one tensor-parallel rank; rows are those of dimension 0.
ParameterExtent local_extent(const PlannerContext& context, std::int32_t parameter);

/// Fills norm_axes of every entry: parameters that tensor parallelism does not cut are copies on
/// all but tp coordinate 0; the last stage's tied weight is a copy everywhere.
void mark_norm_axes(const PlannerContext& context, const StageLayout& stage, Layout& layout);

/// Index of the layout that is just one whole (local) parameter.
std::uint16_t whole_layout(PlanBuilder& tables,
                           const PlannerContext& context,
                           const StageLayout& stage,
                           std::int32_t parameter);

}  // namespace lockstep
