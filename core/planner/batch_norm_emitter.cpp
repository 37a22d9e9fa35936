// Batch normalisation of SegmentEmitter. SyncBatchNorm (torch/nn/modules/_functions.py) sums its
// statistics over the data-parallel group in forward and backward; plain BatchNorm does not.
#include "core/planner/segment_emitter.h"

namespace lockstep {
namespace {

void reduce_statistics(ProgramBuilder& b, const PlannerContext& context, BufferId sums) {
  if (context.graph->model.mlp_norm != MlpNormKind::kSyncBatchNorm || context.data_degree() == 1) {
    return;
  }
  b.collective(Collective::kAllReduce,
               b.tables().communicator(kDataAxes),
               Reduction::kSum,
               b.buffer(sums).elements,
               b.whole(sums),
               b.whole(sums),
               {.stream = Stream::kData});
}

}  // namespace

void SegmentEmitter::batch_norm_forward(const ModuleDef& module, SegmentState& state) {
  const Shape shape = rows_shape(tensor(module.outputs[0]));
  const View x = view(state, module.inputs[0]);
  const BufferId sums = storage(state, module.outputs[1]);
  const View running = b_.whole(
      buffers_.running[static_cast<std::size_t>(segment_ - context_.graph->segments.data())]);
  if (mode_ == ForwardMode::kEvaluate) {
    // Evaluation knows the running statistics only: no sums of this batch, nothing to reduce.
    b_.compute(Work::kBnApply,
               shape,
               {x, weight(module.parameters[0]), weight(module.parameters[1]), running},
               {view(state, module.outputs[0])});
    return;
  }
  b_.compute(Work::kBnSums, shape, {x}, {b_.whole(sums)});
  reduce_statistics(b_, context_, sums);
  b_.compute(
      Work::kBnApply,
      shape,
      {x, b_.whole(sums), weight(module.parameters[0]), weight(module.parameters[1]), running},
      {view(state, module.outputs[0]), running});
}

void SegmentEmitter::batch_norm_backward(const ModuleDef& module,
                                         SegmentState& state,
                                         Gradients& gradients) {
  const Shape shape = rows_shape(tensor(module.outputs[0]));
  const View x = view(state, module.inputs[0]);
  const View sums = b_.whole(storage(state, module.outputs[1]));
  const BufferId dy = take_gradient(gradients, module.outputs[0]);
  const BufferId local = b_.alloc(Category::kTemporary, context_.wide_dtype, 2 * shape.extent[1]);
  b_.compute(Work::kBnGradSums, shape, {b_.whole(dy), x, sums}, {b_.whole(local)});
  // dweight and dbias are this rank's sums (reduced with all gradients later); dx needs the
  // group's.
  BufferId global = local;
  if (context_.graph->model.mlp_norm == MlpNormKind::kSyncBatchNorm) {
    global = b_.alloc(Category::kTemporary, context_.wide_dtype, 2 * shape.extent[1]);
    b_.compute(Work::kPack, Shape{{2 * shape.extent[1]}}, {b_.whole(local)}, {b_.whole(global)});
    reduce_statistics(b_, context_, global);
  }
  const BufferId dx = allocate_gradient(module.inputs[0]);
  operands_.assign(
      {b_.whole(dy), x, sums, b_.whole(local), b_.whole(global), weight(module.parameters[0])});
  const bool accumulate = gradient_targets(module.parameters, targets_);
  targets_.insert(targets_.begin(), b_.whole(dx));
  b_.compute(
      Work::kBnGradApply, shape, operands_, targets_, {.flags = accumulate_flag(accumulate)});
  gradients_ready(module.parameters);
  if (global != local) {
    b_.free(global);
  }
  b_.free(local);
  b_.release(dy);
  add_gradient(gradients, module.inputs[0], dx);
}

}  // namespace lockstep
