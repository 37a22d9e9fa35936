// The end of a step: unscale and check for overflow, global-norm clipping, the optimizer, the loss
// scaler. One rule for every data-parallel kind: it works on the pieces that this rank owns.
#pragma once

#include "core/planner/data_parallel.h"

namespace lockstep {

/// Gradients of all owned pieces are final; runs everything up to updated (owned) parameters.
void emit_optimizer(ProgramBuilder& b,
                    const PlannerContext& context,
                    const StageBuffers& buffers,
                    DataParallelism& data);

}  // namespace lockstep
