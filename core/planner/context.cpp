#include "core/planner/context.h"

namespace lockstep {
namespace {

DType default_gradient_dtype(const Scenario& scenario, DType parameter) {
  const DataStrategy& data = scenario.strategy.data;
  const bool megatron = data.kind == DataKind::kZero1 && data.flavour == ZeroFlavour::kMegatron;
  return megatron && size_of(parameter) < 4 ? DType::kFp32 : parameter;
}

Mesh make_mesh(const StrategySpec& strategy) {
  Mesh mesh;
  mesh.set(Axis::kPipeline, static_cast<int>(strategy.pipeline.degree));
  const DataStrategy& data = strategy.data;
  const bool groups = data.kind == DataKind::kFsdp && data.reshard == Reshard::kGroup;
  const std::int64_t replicas = data.kind == DataKind::kHsdp ? data.replicate
                                : groups                     ? data.degree / data.reshard_group
                                                             : 1;
  mesh.set(Axis::kDataReplica, static_cast<int>(replicas));
  mesh.set(Axis::kData, static_cast<int>(strategy.data.degree / replicas));
  mesh.set(Axis::kContext, static_cast<int>(strategy.context));
  mesh.set(Axis::kTensor, static_cast<int>(strategy.tensor.degree));
  return mesh;
}

}  // namespace

PlannerContext make_context(const Scenario& scenario, const ModelGraph& graph) {
  PlannerContext context;
  const TrainingSpec& training = scenario.training;
  context.scenario = &scenario;
  context.graph = &graph;
  context.mesh = make_mesh(scenario.strategy);
  context.sizes.batch = training.micro_batch;
  context.sizes.seq = graph.model.family == ModelFamily::kMlp ? 1 : training.seq_len;
  context.sizes.tensor = scenario.strategy.tensor.degree;
  context.sizes.sequence_parallel =
      scenario.strategy.tensor.sequence_parallel && scenario.strategy.tensor.degree > 1;
  context.parameter_dtype = training.parameter_dtype();
  context.activation_dtype = training.activation_dtype();
  context.gradient_dtype =
      training.gradient_dtype.value_or(default_gradient_dtype(scenario, context.parameter_dtype));
  context.reduce_dtype = training.reduce_dtype.value_or(context.gradient_dtype);
  context.wide_dtype = training.precision == Precision::kFp64 ? DType::kFp64 : DType::kFp32;
  context.microbatches = static_cast<std::int32_t>(training.accumulate);
  return context;
}

}  // namespace lockstep
