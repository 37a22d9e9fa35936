// A strategy that Lockstep does not have, written by hand with the plan builder: parameters are
// sharded over tensor-parallel ranks only; gradients are reduced, parameter by parameter, to the
// LAST data-parallel rank, which broadcasts the mean. Nothing in core/ knows it. Whatever
// interprets plans must run it like any other.
//
//     const Plan plan = hand_written_plan(resolved(scenario));
#pragma once

#include "core/plan.h"
#include "core/scenario.h"

namespace lockstep::test {

/// Sections init, step, evaluate and save of a resolved scenario without pipeline, loss scaling and
/// global token mean; of its data-parallel strategy only the degree is read.
Plan hand_written_plan(const Scenario& scenario);

}  // namespace lockstep::test
