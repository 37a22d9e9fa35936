// GradientFlow: which gradients a reduction over the data-parallel ranks takes, found by following
// a program's operations: who wrote a gradient last, and which operation laid it into the message.
//
//     for (const GradientReduction& it : gradient_reductions(plan, class_index, program)) ...
//
// What it is not: a rule of any strategy. Reductions of other things (counts, statistics) have no
// gradient in front of them and are left out.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan.h"

namespace lockstep::view {

struct ReducedGradient {
  std::int32_t parameter = 0;
  std::int64_t offset = 0;  ///< elements from the start of the message
  std::int64_t elements = 0;
  std::uint32_t written = 0;  ///< operation that wrote the gradient last
  std::uint32_t filled = 0;   ///< operation after which it lay in the message
};

struct GradientReduction {
  std::uint32_t operation = 0;
  std::vector<ReducedGradient> gradients;  ///< by offset
};

/// In program order: all-reduces and reduce-scatters over data axes.
std::vector<GradientReduction> gradient_reductions(const Plan& plan,
                                                   int class_index,
                                                   const Program& program);

/// Whether parameters are cut over ranks and put together for use.
bool gathers_parameters(const Plan& plan, int class_index, const Program& program);

}  // namespace lockstep::view
