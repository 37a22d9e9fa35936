// Gradient norms, loss scaling and the optimizers' steps.
#include "kernels/cpu/optimizer.h"

#include "executor/work_call.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/scalars.h"

namespace lockstep::exec {
namespace {

namespace cpu = kernels::cpu;

/// visit(parameter, first element, elements) for what this rank holds of each parameter.
template <typename Visit>
void for_each_part(const WorkCall& call, const Operand& whole, Visit&& visit) {
  if (call.layout == nullptr) {
    visit(whole.parameter, std::int64_t{0}, whole.elements);
    return;
  }
  for (const LayoutEntry& entry : call.layout->entries) {
    for_each_piece(entry, call.layout_coordinate, [&](const LayoutPiece& piece) {
      visit(entry.parameter, piece.offset, piece.elements);
    });
  }
}

bool counts(const WorkCall& call, const LayoutEntry& entry) {
  if (entry.norm_axes == kNotInNorm) {
    return false;
  }
  for (std::size_t axis = 0; axis < call.coordinates.size(); ++axis) {
    if (((entry.norm_axes >> axis) & 1U) != 0 && call.coordinates[axis] != 0) {
      return false;
    }
  }
  return true;
}

template <typename T>
double sum_of_squares(const WorkCall& call) {
  const cpu::Elementwise<T>& kernels = cpu::best<cpu::Elementwise<T>>();
  const T* x = call.in[0].as<T>();
  if (call.layout == nullptr) {
    return kernels.sum_squares(x, call.in[0].elements);
  }
  double sum = 0;
  for (const LayoutEntry& entry : call.layout->entries) {
    if (counts(call, entry)) {
      for_each_piece(entry, call.layout_coordinate, [&](const LayoutPiece& piece) {
        sum += kernels.sum_squares(x + piece.offset, piece.elements);
      });
    }
  }
  return sum;
}

/// outputs: flag, gradients...; the last input is the scaler's state.
template <typename T>
void unscale(const WorkCall& call) {
  const cpu::Elementwise<T>& kernels = cpu::best<cpu::Elementwise<T>>();
  double scale = 1;
  with_real(call.in.back().dtype,
            [&]<typename S>(S*) { scale = static_cast<double>(*call.in.back().as<S>()); });
  bool overflow = false;
  for (const Operand& gradient : call.out.subspan(1)) {
    overflow |=
        kernels.unscale_and_check(gradient.as<T>(), static_cast<T>(1 / scale), gradient.elements);
  }
  if (overflow) {
    with_real(call.out[0].dtype, [&]<typename F>(F*) { *call.out[0].as<F>() = 1; });
  }
}

bool decays(const WorkCall& call, std::int32_t parameter) {
  return parameter >= 0 && !call.graph.parameter(parameter).vector;
}

/// in: parameter, gradient, states...; in place. Vectors (norm weights, biases) do not decay.
template <typename T>
void step(const WorkCall& call) {
  const cpu::Optimizer<T>& kernels = cpu::best<cpu::Optimizer<T>>();
  const TrainingSpec& training = call.training;
  const double rate = call.factor_or_one();
  T* const parameter = call.out[0].as<T>();
  const T* gradient = call.in[1].as<T>();
  for_each_part(call, call.out[0], [&](std::int32_t id, std::int64_t first, std::int64_t n) {
    const double decay = decays(call, id) ? training.weight_decay : 0;
    const auto state = [&](std::size_t i) { return call.out[i].as<T>() + first; };
    if (call.op.work == Work::kAdamW) {
      kernels.adamw(
          parameter + first,
          gradient + first,
          state(1),
          state(2),
          {rate, decay, training.beta1, training.beta2, training.epsilon, call.place.iteration + 1},
          n);
      return;
    }
    const cpu::SgdSettings settings{rate, decay, training.momentum, 0, call.place.iteration == 0};
    if (call.op.work == Work::kMomentum) {
      kernels.momentum(parameter + first, gradient + first, state(1), settings, n);
    } else {
      kernels.sgd(parameter + first, gradient + first, settings, n);
    }
  });
}

}  // namespace

void run_optimizer(const WorkCall& call) {
  switch (call.op.work) {
    case Work::kSumSquares:
      with_real(call.in[0].dtype,
                [&]<typename T>(T*) { *call.out[0].as<double>() += sum_of_squares<T>(call); });
      return;
    case Work::kClipCoefficient:
      *call.out[0].as<double>() =
          cpu::clip_coefficient(*call.in[0].as<double>(), call.training.clip_norm);
      return;
    case Work::kUnscaleAndCheck:
      return with_real(call.out[1].dtype, [&]<typename T>(T*) { unscale<T>(call); });
    case Work::kScalerUpdate:
      return with_real(call.out[0].dtype, [&]<typename T>(T*) {
        cpu::scaler_update<T>(*call.in[0].as<T>() != 0, {}, call.out[0].as<T>());
      });
    default:
      return with_real(call.out[0].dtype, [&]<typename T>(T*) { step<T>(call); });
  }
}

}  // namespace lockstep::exec
