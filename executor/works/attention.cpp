// Attention, plain and flash.
#include "kernels/cpu/attention.h"

#include <vector>

#include "executor/dropout_key.h"
#include "executor/work_call.h"
#include "kernels/cpu/dispatch.h"

namespace lockstep::exec {
namespace {

namespace cpu = kernels::cpu;

/// Of this thread, grown once: workspaces do not outlive an operation.
template <typename T>
T* workspace(std::int64_t elements) {
  thread_local std::vector<T> memory;
  if (memory.size() < static_cast<std::size_t>(elements)) {
    memory.resize(static_cast<std::size_t>(elements));
  }
  return memory.data();
}

cpu::AttentionShape shape_of(const WorkCall& call) {
  return {call.extent(0),
          call.extent(1),
          {call.extent(2), call.extent(3), call.extent(4)},
          call.graph.model.sliding_window};
}

cpu::AttentionDropout dropout_of(const WorkCall& call) {
  return {call.training.dropout,
          dropout_key(call),
          call.graph.model.heads,
          call.tensor_coordinate * call.extent(2)};
}

/// What plain attention stores: probabilities, mask?, dropped?, from operand `first` on.
template <typename T>
cpu::AttentionSaved<T> saved(std::span<const Operand> operands, std::size_t first) {
  cpu::AttentionSaved<T> result;
  result.probabilities = operands[first].as<T>();
  if (operands.size() > first + 2) {
    result.mask = operands[first + 1].as<std::uint8_t>();
    result.dropped = operands[first + 2].as<T>();
  }
  return result;
}

template <typename T>
void run_typed(const WorkCall& call) {
  const cpu::AttentionShape shape = shape_of(call);
  const cpu::Attention<T>& kernels = cpu::best<cpu::Attention<T>>();
  const auto in = [&](std::size_t i) { return call.in[i].as<T>(); };
  const auto out = [&](std::size_t i) { return call.out[i].as<T>(); };
  switch (call.op.work) {
    case Work::kFlashAttention:
      return kernels.flash(in(0), out(0), out(1), workspace<T>(cpu::flash_workspace(shape)), shape);
    case Work::kFlashAttentionGrad:
      return kernels.flash_grad(
          in(0), {in(1), in(2), in(3)}, out(0), workspace<T>(cpu::flash_workspace(shape)), shape);
    case Work::kAttention: {
      cpu::AttentionDropout dropout = dropout_of(call);
      const cpu::AttentionSaved<T> stored = saved<T>(call.out, 1);
      if (stored.mask == nullptr) {
        dropout.probability = 0;  // evaluation drops nothing
      }
      return cpu::attention(in(0), out(0), stored, dropout, shape);
    }
    default: {
      const cpu::AttentionGradient<T> gradient{in(0), out(0), workspace<T>(shape.seq * shape.seq)};
      return cpu::attention_grad(in(1), saved<T>(call.in, 2), gradient, dropout_of(call), shape);
    }
  }
}

}  // namespace

void run_attention(const WorkCall& call) {
  with_real(call.out[0].dtype, [&]<typename T>(T*) { run_typed<T>(call); });
}

}  // namespace lockstep::exec
