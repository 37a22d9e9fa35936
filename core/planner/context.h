// PlannerContext: what every step of the planner reads and none changes: the resolved scenario, the
// model graph, the mesh, the sizes and dtypes that follow from them.
#pragma once

#include <array>
#include <cstdint>

#include "core/mesh.h"
#include "core/model_graph.h"
#include "core/planner/program_builder.h"
#include "core/scenario.h"

namespace lockstep {

struct PlannerContext {
  const Scenario* scenario = nullptr;
  const ModelGraph* graph = nullptr;
  Mesh mesh;
  LocalSizes sizes;
  DType parameter_dtype = DType::kFp32;  ///< what forward and backward read
  DType activation_dtype = DType::kFp32;
  DType gradient_dtype = DType::kFp32;  ///< what weight gradients are accumulated in
  DType reduce_dtype = DType::kFp32;    ///< what gradients cross ranks in
  DType wide_dtype = DType::kFp32;      ///< losses, statistics, master weights: fp32, or fp64
  std::int32_t microbatches = 1;        ///< [M]

  const TrainingSpec& training() const { return scenario->training; }
  const StrategySpec& strategy() const { return scenario->strategy; }
  std::int64_t tensor() const { return sizes.tensor; }
  bool sequence_parallel() const { return sizes.sequence_parallel; }
  std::int64_t data_degree() const { return mesh.count(kDataAxes); }

  /// Elements of a parameter on one tensor-parallel rank, vocabulary padding included.
  std::int64_t local_elements(const ParameterDef& parameter) const {
    return local_rows(parameter, tensor()) * local_columns(parameter, tensor());
  }
  /// False where some blocks are recomputed and others are not: counting must visit each.
  bool uniform_blocks() const {
    return training().recompute != Recompute::kFull || training().recompute_every == 1;
  }
  /// True where one tensor-parallel rank computes only a part of the gradient's sum.
  bool partial_gradient(const ParameterDef& parameter) const {
    return tensor() > 1 &&
           (parameter.partial == PartialGradient::kAlways ||
            (parameter.partial == PartialGradient::kWithSequenceParallel && sequence_parallel()));
  }
};

/// Derives the context of a validated, resolved scenario.
PlannerContext make_context(const Scenario& scenario, const ModelGraph& graph);

/// Where a pass stands: which micro-batch, and whether its stage sees it first or last.
struct Pass {
  std::int32_t microbatch = 0;
  bool first_backward = true;  ///< no gradient of this stage is there yet in this step
  bool last_backward = true;   ///< gradients are complete after this one
};

}  // namespace lockstep
