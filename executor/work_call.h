// WorkCall: one compute or host operation with everything it reads: memory of its operands, shape,
// factor, and where on the mesh it runs. run_work() carries it out by the kernels; core/operands.h
// is the contract. It knows no plan order, no stream and no strategy.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/error.h"
#include "core/layout.h"
#include "core/model_graph.h"
#include "core/plan.h"
#include "core/training.h"
#include "executor/host.h"

namespace lockstep::exec {

struct WorkCall {
  const ModelGraph& graph;
  const TrainingSpec& training;
  const Operation& op;
  const Shape& shape;
  std::span<const Operand> in;
  std::span<const Operand> out;
  const Layout* layout = nullptr;
  std::int32_t layout_coordinate = 0;  ///< this rank's on the axis that the layout goes over
  std::optional<double> factor;        ///< the operation's scalar, unless an operand carries it
  RunPlace place;
  std::int64_t tensor_degree = 1;
  std::int64_t tensor_coordinate = 0;
  std::span<const std::int32_t> coordinates;  ///< by Axis
  Host& host;

  std::int64_t extent(int i) const { return shape.extent[i]; }
  bool accumulates() const { return op.has(kAccumulate); }
  double factor_or_one() const { return factor.value_or(1.0); }
  /// Where `here` tokens begin in the micro-batch: 0 when they are all, else (sequence parallelism)
  /// they are this rank's part.
  std::int64_t first_token(std::int64_t here) const {
    return here < training.micro_batch * training.seq_len ? tensor_coordinate * here : 0;
  }
  const ModuleDef& module() const { return graph.module(op.module); }
};

/// Carries the operation out on this thread. NotSupportedError for storage without kernels.
void run_work(const WorkCall& call);

/// visit(T*) with T float or double, the arithmetic of `dtype`.
template <typename Visit>
decltype(auto) with_real(DType dtype, Visit&& visit) {
  if (dtype == DType::kFp64) {
    return visit(static_cast<double*>(nullptr));
  }
  if (dtype == DType::kFp32) {
    return visit(static_cast<float*>(nullptr));
  }
  throw NotSupportedError("executor",
                          "no kernels for " + std::string(name_of(dtype)) +
                              " on the cpu: train with --precision fp32 or fp64");
}

// Families, a file each in executor/works/.
void run_linear(const WorkCall& call);
void run_embedding(const WorkCall& call);
void run_norm(const WorkCall& call);
void run_attention(const WorkCall& call);
void run_by_element(const WorkCall& call);
void run_batch_norm(const WorkCall& call);
void run_loss(const WorkCall& call);
void run_pack(const WorkCall& call);
void run_optimizer(const WorkCall& call);
void run_initialize(const WorkCall& call);
void run_host_work(const WorkCall& call);

}  // namespace lockstep::exec
