// OptimizerStates: the optimizer's own memory for one piece of parameters: master copy and moments.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/planner/context.h"
#include "core/planner/program_builder.h"

namespace lockstep {

struct OptimizerStates {
  BufferId master = kNoBuffer;
  std::array<BufferId, 3> states{kNoBuffer, kNoBuffer, kNoBuffer};
  int count = 0;

  std::span<const BufferId> all() const { return {states.data(), static_cast<std::size_t>(count)}; }
};

/// fp32 copy of `elements` parameters, cast from `source`; section init.
void allocate_master(ProgramBuilder& b,
                     const PlannerContext& context,
                     const View& source,
                     const AllocOptions& options,
                     OptimizerStates& states);

/// Moments: none for SGD; one for momentum; two for AdamW; 8-bit AdamW (arXiv:2110.02861) two of
/// one byte and one fp32 maximum per block of 256 elements and moment. Zeroed.
void allocate_moments(ProgramBuilder& b,
                      const PlannerContext& context,
                      std::int64_t elements,
                      const AllocOptions& options,
                      OptimizerStates& states);

inline constexpr std::int64_t kQuantizationBlock = 256;

}  // namespace lockstep
