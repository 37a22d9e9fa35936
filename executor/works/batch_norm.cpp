// Batch normalisation in parts.
#include "kernels/cpu/batch_norm.h"

#include "executor/work_call.h"
#include "kernels/cpu/dispatch.h"

namespace lockstep::exec {
namespace {

namespace cpu = kernels::cpu;

/// torch.nn.BatchNorm1d's defaults.
constexpr double kMomentum = 0.1;
constexpr double kEpsilon = 1e-5;

template <typename T>
void run_typed(const WorkCall& call) {
  const cpu::BatchNorm<T>& kernels = cpu::best<cpu::BatchNorm<T>>();
  const cpu::BatchNormShape shape{call.extent(0), call.extent(1), kEpsilon, kMomentum};
  const auto in = [&](std::size_t i) { return call.in[i].as<T>(); };
  const auto out = [&](std::size_t i) { return call.out[i].as<T>(); };
  switch (call.op.work) {
    case Work::kBnSums:
      return kernels.sums(in(0), out(0), shape);
    case Work::kBnGradSums:
      return kernels.grad_sums(in(0), in(1), in(2), out(0), shape);
    case Work::kBnApply: {
      const bool evaluates = call.in.size() == 4;  // no sums: by the running statistics
      const std::size_t weight = evaluates ? 1 : 2;
      const cpu::BatchNormParameters<T> parameters{in(weight), in(weight + 1)};
      return evaluates ? kernels.evaluate(in(0), in(3), parameters, out(0), shape)
                       : kernels.apply(in(0), in(1), parameters, out(0), out(1), shape);
    }
    default:
      return kernels.grad_apply(in(0),
                                {in(1), in(2)},
                                {in(3), in(4)},
                                in(5),
                                {out(0), out(1), out(2), call.accumulates()},
                                shape);
  }
}

}  // namespace

void run_batch_norm(const WorkCall& call) {
  with_real(call.out[0].dtype, [&]<typename T>(T*) { run_typed<T>(call); });
}

}  // namespace lockstep::exec
