// Cross-entropy in three parts.
#include "kernels/cpu/loss.h"

#include <algorithm>

#include "executor/work_call.h"
#include "kernels/cpu/dispatch.h"

namespace lockstep::exec {
namespace {

namespace cpu = kernels::cpu;

cpu::LossShape shape_of(const WorkCall& call) {
  const std::int64_t local = call.extent(1);
  const std::int64_t valid = call.extent(2);
  // A rank that has the whole vocabulary begins at its start, whatever its coordinate.
  return {call.extent(0), local, local >= valid ? 0 : call.tensor_coordinate * local, valid};
}

/// in: logits, maximum, sums, target, labels, scaler state?, token count? The loss is a mean over
/// the micro-batch's labels that count times the operation's scalar, or a sum divided by the token
/// count. A micro-batch of which nothing counts adds 0 (PyTorch's mean is NaN there).
template <typename T>
void finish(const WorkCall& call) {
  cpu::LossFactors factors;
  const std::int64_t counted = cpu::count_labels(call.in[4].as<std::int64_t>(), call.extent(0));
  factors.loss = call.factor_or_one() / static_cast<double>(std::max<std::int64_t>(counted, 1));
  factors.accumulate = call.accumulates();
  double scale = 1;
  for (std::size_t i = 5; i < call.in.size(); ++i) {
    if (call.in[i].dtype == DType::kInt64) {
      const std::int64_t tokens = *call.in[i].as<std::int64_t>();
      factors.loss = 1.0 / static_cast<double>(std::max<std::int64_t>(tokens, 1));
    } else {
      scale = static_cast<double>(*call.in[i].as<T>());
    }
  }
  factors.gradient = factors.loss * scale;
  const T* logits = call.in[0].as<T>();
  const cpu::LossRows<T> rows{call.in[1].as<T>(), call.in[2].as<T>(), call.in[3].as<T>()};
  T* const gradient = call.out.size() > 1 ? call.out[1].as<T>() : nullptr;
  cpu::best<cpu::Loss<T>>().finish(logits,
                                   rows,
                                   call.in[4].as<std::int64_t>(),
                                   factors,
                                   call.out[0].as<T>(),
                                   gradient,
                                   shape_of(call));
}

template <typename T>
void run_typed(const WorkCall& call) {
  const cpu::Loss<T>& kernels = cpu::best<cpu::Loss<T>>();
  switch (call.op.work) {
    case Work::kLossLocalMax:
      if (call.place.section == SectionKind::kEvaluate) {
        call.host.logits(call.place, call.in[0]);
      }
      return kernels.local_max(call.in[0].as<T>(), call.out[0].as<T>(), shape_of(call));
    case Work::kLossLocalSums:
      return kernels.local_sums(call.in[0].as<T>(),
                                call.in[1].as<T>(),
                                call.in[2].as<std::int64_t>(),
                                call.out[0].as<T>(),
                                call.out[1].as<T>(),
                                shape_of(call));
    default:
      return finish<T>(call);
  }
}

}  // namespace

void run_loss(const WorkCall& call) {
  with_real(call.in[0].dtype, [&]<typename T>(T*) { run_typed<T>(call); });
}

}  // namespace lockstep::exec
