// LayerNorm, RMSNorm, and RMSNorm per head of queries and keys.
#include "kernels/cpu/norm.h"

#include "executor/work_call.h"
#include "kernels/cpu/dispatch.h"

namespace lockstep::exec {
namespace {

namespace cpu = kernels::cpu;

cpu::HeadShape heads(const WorkCall& call) {
  const ModelSpec& model = call.graph.model;
  return {model.heads / call.tensor_degree, model.kv_heads / call.tensor_degree, model.head_dim};
}

template <typename T>
T* optional(std::span<const Operand> operands, std::size_t i) {
  return i < operands.size() ? operands[i].as<T>() : nullptr;
}

/// in: x, weight, bias? (head norm: query weight, key weight); out: y, statistics.
template <typename T>
void forward(const WorkCall& call) {
  const cpu::Norm<T>& kernels = cpu::best<cpu::Norm<T>>();
  const bool per_head = call.module().kind == ModuleKind::kHeadNorm;
  cpu::NormParameters<T> parameters;
  parameters.epsilon = call.graph.model.norm_epsilon;
  parameters.weight = call.in[1].as<T>();
  T* const second = optional<T>(call.in, 2);
  const T* x = call.in[0].as<T>();
  T* const y = call.out[0].as<T>();
  T* const statistics = call.out[1].as<T>();
  if (per_head) {
    parameters.key_weight = second;
    return kernels.heads(x, parameters, y, statistics, call.extent(0), heads(call));
  }
  parameters.bias = second;
  const cpu::NormShape shape{call.extent(0), call.extent(1)};
  return call.graph.model.norm == NormKind::kLayerNorm
             ? kernels.layer(x, parameters, y, statistics, shape)
             : kernels.rms(x, parameters, y, statistics, shape);
}

/// in: dy, x, statistics, weight (key weight?); out: dx, dweight, dbias? (or dkey weight).
template <typename T>
void backward(const WorkCall& call) {
  const cpu::Norm<T>& kernels = cpu::best<cpu::Norm<T>>();
  const cpu::NormSaved<T> saved{call.in[1].as<T>(), call.in[2].as<T>()};
  const T* weight = call.in[3].as<T>();
  cpu::NormGradients<T> out;
  out.dx = call.out[0].as<T>();
  out.dweight = call.out[1].as<T>();
  out.accumulate = call.accumulates();
  T* const second = optional<T>(call.out, 2);
  const T* dy = call.in[0].as<T>();
  if (call.module().kind == ModuleKind::kHeadNorm) {
    out.dkey_weight = second;
    cpu::NormParameters<T> parameters;
    parameters.weight = weight;
    parameters.key_weight = optional<T>(call.in, 4);
    parameters.epsilon = call.graph.model.norm_epsilon;
    return kernels.heads_grad(dy, saved, parameters, out, call.extent(0), heads(call));
  }
  out.dbias = second;
  const cpu::NormShape shape{call.extent(0), call.extent(1)};
  return call.graph.model.norm == NormKind::kLayerNorm
             ? kernels.layer_grad(dy, saved, weight, out, shape)
             : kernels.rms_grad(dy, saved, weight, out, shape);
}

}  // namespace

void run_norm(const WorkCall& call) {
  with_real(call.out[0].dtype, [&]<typename T>(T*) {
    call.op.work == Work::kNorm ? forward<T>(call) : backward<T>(call);
  });
}

}  // namespace lockstep::exec
