// ModuleCost: arithmetic and memory traffic of one module on one rank, in closed form.
//
// FLOPs are those of matrix products: m x k by k x n counts 2mnk (PaLM, arXiv:2204.02311 appendix
// B; Narayanan et al. 2021, arXiv:2104.04473 appendix). Element-wise modules count none, so that
// sums agree with the published 6 P per token; their time is that of their bytes. Attention is
// counted in full, neither its causal half nor a sliding window.
//
// Bytes are those of an implementation that reads and writes each operand of core/operands.h once.
// What it is not: communication (the planner's), or time (the simulator's).
#pragma once

#include <cstdint>

#include "core/model_graph.h"

namespace lockstep {

struct ModuleCost {
  double forward_flops = 0;
  double backward_input_flops = 0;   ///< for the gradients of the module's inputs
  double backward_weight_flops = 0;  ///< for the gradients of its parameters
  double forward_bytes = 0;
  double backward_bytes = 0;               ///< both parts together
  std::int64_t saved_bytes = 0;            ///< kept from forward to backward, by its first reader
  std::int64_t saved_statistic_bytes = 0;  ///< of which row statistics

  ModuleCost& operator+=(const ModuleCost& other);
};

/// Cost of module `module` (index into the whole model) for one micro-batch.
ModuleCost module_cost(const ModelGraph& graph,
                       std::uint32_t module,
                       const TrainingSpec& training,
                       const LocalSizes& sizes);

/// Sum over the modules of segment `segment`.
ModuleCost segment_cost(const ModelGraph& graph,
                        std::int32_t segment,
                        const TrainingSpec& training,
                        const LocalSizes& sizes);

}  // namespace lockstep
