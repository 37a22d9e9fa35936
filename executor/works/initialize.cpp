// First values: of parameters from their element's place in the whole model, so that every sharding
// starts alike; of numbers as the operation says.
#include "kernels/cpu/initialize.h"

#include <algorithm>
#include <cmath>

#include "core/parameter_map.h"
#include "executor/work_call.h"

namespace lockstep::exec {
namespace {

namespace cpu = kernels::cpu;

/// What a parameter's elements start as: a constant, or normal with this deviation.
struct FirstValue {
  bool normal = true;
  double value = 0;
};

/// GPT-2's rule: weights N(0, 0.02), projections into the residual stream by 1 / sqrt(2 layers)
/// (Radford et al. 2019, section 2.3). Layers of an MLP: He et al., arXiv:1502.01852, section 2.2.
FirstValue first_value(const WorkCall& call, const ParameterDef& parameter) {
  if (parameter.vector) {
    return {false, parameter.suffix.ends_with("bias") ? 0.0 : 1.0};
  }
  const ModelSpec& model = call.graph.model;
  if (model.family == ModelFamily::kMlp) {
    return {true, std::sqrt(2.0 / static_cast<double>(parameter.columns))};
  }
  const bool into_residual = parameter.cut == ParameterCut::kColumns;
  return {true, into_residual ? 0.02 / std::sqrt(2.0 * static_cast<double>(model.layers)) : 0.02};
}

/// What a checkpoint (or whoever the host is) says the elements start as.
template <typename T>
bool from_host(const WorkCall& call, std::int32_t parameter, const ParameterRun& run, T* to) {
  constexpr std::int64_t kAtOnce = 512;
  double values[kAtOnce];
  for (std::int64_t done = 0; done < run.elements; done += kAtOnce) {
    const std::int64_t n = std::min(kAtOnce, run.elements - done);
    if (!call.host.first_values(parameter, run.logical + done, n, values)) {
      return false;
    }
    std::transform(values, values + n, to + done, [](double v) { return static_cast<T>(v); });
  }
  return true;
}

/// Elements [first, first + n) of this rank's part of the parameter.
template <typename T>
void fill(const WorkCall& call, std::int32_t id, std::int64_t first, std::int64_t n, T* x) {
  // A tied copy starts as the weight that it is tied to.
  const ParameterDef& parameter = call.graph.parameter(id);
  const std::int32_t source = parameter.tied ? 0 : id;
  const FirstValue value = first_value(call, parameter);
  std::fill(x, x + n, T{0});  // padding
  const ParameterMap map(parameter, call.tensor_degree, call.tensor_coordinate);
  map.for_each_run(first, n, [&](const ParameterRun& run) {
    T* const at = x + (run.local - first);
    if (from_host(call, source, run, at)) {
      return;
    }
    if (value.normal) {
      cpu::initialize_normal(at,
                             run.logical,
                             run.elements,
                             value.value,
                             {static_cast<std::uint64_t>(call.training.seed),
                              static_cast<std::uint32_t>(source),
                              0,
                              0});
    } else {
      cpu::initialize_constant(at, run.elements, static_cast<T>(value.value));
    }
  });
}

template <typename T>
void numbers(const WorkCall& call) {
  T* const x = call.out[0].as<T>();
  std::fill(x, x + call.out[0].elements, T{0});
  std::fill(x + call.extent(1), x + call.extent(2), static_cast<T>(call.factor_or_one()));
}

template <typename T>
void parameters(const WorkCall& call) {
  T* const x = call.out[0].as<T>();
  if (call.layout == nullptr) {
    return fill(call, call.out[0].parameter, 0, call.out[0].elements, x);
  }
  std::fill(x, x + call.out[0].elements, T{0});
  // The output is this coordinate's slice, or the slices of all coordinates side by side.
  const bool whole = call.out[0].elements == call.layout->padded_elements();
  const std::int32_t begin = whole ? 0 : call.layout_coordinate;
  const std::int32_t end = whole ? call.layout->coordinates : call.layout_coordinate + 1;
  for (std::int32_t coordinate = begin; coordinate < end; ++coordinate) {
    T* const slice = x + (coordinate - begin) * call.layout->elements_per_coordinate;
    for_each_piece(*call.layout, coordinate, [&](const LayoutPiece& piece) {
      fill(call, piece.parameter, piece.first, piece.elements, slice + piece.offset);
    });
  }
}

}  // namespace

void run_initialize(const WorkCall& call) {
  const Operand& out = call.out[0];
  if (out.dtype == DType::kInt64) {
    return numbers<std::int64_t>(call);
  }
  with_real(out.dtype, [&]<typename T>(T*) {
    return out.parameter >= 0 || call.layout != nullptr ? parameters<T>(call) : numbers<T>(call);
  });
}

}  // namespace lockstep::exec
