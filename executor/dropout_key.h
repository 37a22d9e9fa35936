// Which random numbers a dropout draws: those of its module, micro-batch and step. Data-parallel
// ranks draw different ones, the ranks of a tensor-parallel group the same ones for the same
// element (semantics of Megatron-LM's random states), and recomputation the same ones again.
#pragma once

#include "executor/work_call.h"
#include "kernels/cpu/random.h"

namespace lockstep::exec {

inline kernels::cpu::RandomKey dropout_key(const WorkCall& call) {
  return {static_cast<std::uint64_t>(call.training.seed),
          call.op.module,
          static_cast<std::uint32_t>(call.place.data_coordinate * call.training.accumulate +
                                     call.place.microbatch),
          static_cast<std::uint32_t>(call.place.iteration)};
}

}  // namespace lockstep::exec
