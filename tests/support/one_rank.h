// The same model and training on one rank with one micro-batch: what the value check compares with.
#pragma once

#include "core/scenario.h"

namespace lockstep::test {

/// Resolved; without clipping, recomputation and tensor, data or pipeline parallelism, which must
/// not change what is computed.
Scenario one_rank(const Scenario& scenario);

}  // namespace lockstep::test
