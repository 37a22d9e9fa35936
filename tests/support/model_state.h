// Model state: the bytes of parameters, gradients and optimizer states that a rank holds when the
// optimizer of a steady step begins (what the ZeRO paper counts), and memory by iteration.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan.h"
#include "core/plan_summary.h"

namespace lockstep::test {

struct ModelState {
  std::int64_t bytes = 0;
  std::int64_t padding = 0;  ///< of these, what the layouts say is padding
};

ModelState model_state(const Plan& plan, int rank);
/// Of the rank that holds most; the padding of the rank that has most of it.
ModelState largest_model_state(const Plan& plan);

/// Iterations 0, 1, ... of a class, each starting with what the last one left.
std::vector<ProgramSummary> iterations(const Plan& plan, int class_index, int count);

/// Iteration (from 0) that all later ones are like.
int steady_iteration(const Plan& plan);

}  // namespace lockstep::test
