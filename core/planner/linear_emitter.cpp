// Linear modules and embeddings of SegmentEmitter, and what tensor parallelism adds to them.
//
// Without sequence parallelism (arXiv:1909.08053, section 3) a row-cut product's output and a
// column-cut product's input gradient are summed over tp by all-reduce. With it (arXiv:2205.05198,
// section 4.2.2) activations between products are cut by tokens: all-gather before a column-cut
// product, reduce-scatter after a row-cut one, and the mirror in backward, where the saved input is
// gathered a second time for the weight gradient while the input gradient is computed.
#include "core/planner/segment_emitter.h"

namespace lockstep {

std::uint8_t SegmentEmitter::tensor_communicator() {
  return b_.tables().communicator(mask_of(Axis::kTensor));
}

/// The whole from token shards, in a buffer of its own.
BufferId SegmentEmitter::gather_tokens(BufferId shard) {
  const std::int64_t elements = b_.buffer(shard).elements;
  const BufferId whole =
      b_.alloc(Category::kTemporary, b_.buffer(shard).dtype, elements * context_.tensor());
  b_.collective(Collective::kAllGather,
                tensor_communicator(),
                Reduction::kNone,
                elements,
                b_.whole(shard),
                b_.whole(whole),
                {.stream = Stream::kTensor});
  return whole;
}

void SegmentEmitter::reduce_tensor(BufferId buffer) {
  b_.collective(Collective::kAllReduce,
                tensor_communicator(),
                Reduction::kSum,
                b_.buffer(buffer).elements,
                b_.whole(buffer),
                b_.whole(buffer),
                {.stream = Stream::kTensor});
}

void SegmentEmitter::scatter_tokens(BufferId whole, BufferId shard) {
  b_.collective(Collective::kReduceScatter,
                tensor_communicator(),
                Reduction::kSum,
                b_.buffer(shard).elements,
                b_.whole(whole),
                b_.whole(shard),
                {.stream = Stream::kTensor});
}

std::int64_t SegmentEmitter::expected_input(const ModuleDef& module) const {
  const Shape shape = linear_shape(module);
  return shape.extent[0] * shape.extent[2];
}

Shape SegmentEmitter::linear_shape(const ModuleDef& module) const {
  const std::int64_t t = context_.tensor();
  std::int64_t rows = 0;
  for (std::int16_t i = 0; i < module.weights; ++i) {
    const ParameterDef& definition =
        form_->parameters[static_cast<std::size_t>(module.parameters[static_cast<std::size_t>(i)])];
    rows += local_rows(definition, t);
  }
  const ParameterDef& first =
      form_->parameters[static_cast<std::size_t>(module.parameters.front())];
  const TensorDef& input = tensor(module.inputs[0]);
  const std::int64_t tokens =
      module.cut == LinearCut::kNone ? context_.sizes.region_tokens() : context_.sizes.tokens();
  return Shape{
      {tokens * input.per_token, rows / module.groups, local_columns(first, t), module.groups}};
}

void SegmentEmitter::linear_forward(const ModuleDef& module, SegmentState& state) {
  const bool cut = context_.tensor() > 1 && module.cut != LinearCut::kNone;
  const bool shards = cut && context_.sequence_parallel();
  const bool row = cut && module.cut == LinearCut::kRow;
  const Shape shape = linear_shape(module);
  BufferId& x = storage(state, module.inputs[0]);
  BufferId gathered = kNoBuffer;
  if (shards && !row) {
    gathered = gather_tokens(x);
    const TensorDef& input = tensor(module.inputs[0]);
    const int self = static_cast<int>(b_.module()) - segment_->first_module;
    if (context_.strategy().tensor.save_gathered_input && input.first_saver == self &&
        input.last_reader == self && mode_ != ForwardMode::kEvaluate) {
      b_.release(x);  // backward will find the gathered input instead
      x = std::exchange(gathered, kNoBuffer);
    }
  }
  const BufferId out = storage(state, module.outputs[0]);
  const BufferId partial = shards && row ? b_.alloc(Category::kTemporary,
                                                    context_.activation_dtype,
                                                    shape.extent[0] * shape.extent[1])
                                         : out;
  operands_.assign(1, b_.whole(gathered == kNoBuffer ? x : gathered));
  // A row-cut product is a partial sum: its bias is added once, after the reduction.
  const std::size_t fused =
      row ? static_cast<std::size_t>(module.weights) : module.parameters.size();
  for (std::size_t i = 0; i < fused; ++i) {
    operands_.push_back(weight(module.parameters[i]));
  }
  const View product = b_.whole(partial);
  b_.compute(Work::kMatmul, shape, operands_, Views(&product, 1));
  if (gathered != kNoBuffer) {
    b_.free(gathered);
  }
  if (!row) {
    return;
  }
  if (shards) {
    scatter_tokens(partial, out);
    b_.free(partial);
  } else {
    reduce_tensor(out);
  }
  for (std::size_t i = fused; i < module.parameters.size(); ++i) {
    b_.compute(Work::kBias,
               rows_shape(tensor(module.outputs[0])),
               {b_.whole(out), weight(module.parameters[i])},
               {b_.whole(out)},
               {.flags = kInPlace});
  }
}

void SegmentEmitter::linear_weight_gradient(const ModuleDef& module,
                                            const View& dy,
                                            const View& x) {
  const bool separate_bias = context_.tensor() > 1 && module.cut == LinearCut::kRow;
  const std::span<const std::int16_t> parameters(
      module.parameters.data(),
      separate_bias ? static_cast<std::size_t>(module.weights) : module.parameters.size());
  const bool accumulate = gradient_targets(parameters, targets_);
  const View inputs[] = {dy, x};
  b_.compute(Work::kMatmulGradWeight,
             linear_shape(module),
             inputs,
             targets_,
             {.flags = accumulate_flag(accumulate)});
  gradients_ready(parameters);
}

void SegmentEmitter::bias_gradient(const ModuleDef& module, const View& dy) {
  const std::span<const std::int16_t> biases =
      std::span<const std::int16_t>(module.parameters)
          .subspan(static_cast<std::size_t>(module.weights));
  if (biases.empty()) {
    return;
  }
  const bool accumulate = gradient_targets(biases, targets_);
  b_.compute(Work::kBiasGrad,
             rows_shape(tensor(module.outputs[0])),
             Views(&dy, 1),
             targets_,
             {.flags = accumulate_flag(accumulate)});
  gradients_ready(biases);
}

void SegmentEmitter::linear_backward(int index, SegmentState& state, Gradients& gradients) {
  const ModuleDef& module = form_->modules[static_cast<std::size_t>(index)];
  const bool cut = context_.tensor() > 1 && module.cut != LinearCut::kNone;
  const bool shards = cut && context_.sequence_parallel();
  const bool row = cut && module.cut == LinearCut::kRow;
  const bool column = cut && module.cut == LinearCut::kColumn;
  const Shape shape = linear_shape(module);
  const std::int8_t in = module.inputs[0];
  const BufferId x = storage(state, in);
  BufferId dy = take_gradient(gradients, module.outputs[0]);
  if (row) {
    bias_gradient(module, b_.whole(dy));
    if (shards) {
      const BufferId whole = gather_tokens(dy);
      b_.release(dy);
      dy = whole;
    }
  }
  // The first layer of an MLP reads data, which needs no gradient.
  const bool wants_input_gradient = !(in == form_->input && segment_->first_module == 0);
  const bool defer = part_ == BackwardPart::kInput;
  const bool gather_input =
      shards && column && !defer && b_.buffer(x).elements < expected_input(module);
  const BufferId whole_x = gather_input ? gather_tokens(x) : x;
  BufferId dx = kNoBuffer;
  BufferId partial = kNoBuffer;  // being reduced while the weight gradient is computed
  if (wants_input_gradient) {
    dx = b_.alloc(shards && column ? Category::kTemporary : Category::kActivation,
                  context_.activation_dtype,
                  shape.extent[0] * shape.extent[2]);
    operands_.assign(1, b_.whole(dy));
    for (std::int16_t i = 0; i < module.weights; ++i) {
      operands_.push_back(weight(module.parameters[static_cast<std::size_t>(i)]));
    }
    const View dx_view = b_.whole(dx);
    b_.compute(Work::kMatmulGradInput, shape, operands_, Views(&dx_view, 1));
    if (column && shards) {
      const BufferId shard = allocate_gradient(in);
      scatter_tokens(dx, shard);
      partial = std::exchange(dx, shard);
    } else if (column) {
      reduce_tensor(dx);
    }
  }
  if (defer) {
    b_.retain(x);
    b_.retain(dy);
    state.deferred.push_back({index, dy, x});
  } else {
    linear_weight_gradient(module, b_.whole(dy), b_.whole(whole_x));
  }
  if (gather_input) {
    b_.free(whole_x);
  }
  if (partial != kNoBuffer) {
    b_.free(partial);
  }
  b_.release(dy);
  if (wants_input_gradient) {
    add_gradient(gradients, in, dx);
  }
}

void SegmentEmitter::embedding_forward(const ModuleDef& module, SegmentState& state) {
  const bool cut = context_.tensor() > 1;
  const bool shards = cut && context_.sequence_parallel();
  const ParameterDef& table = form_->parameters[static_cast<std::size_t>(module.parameters[0])];
  const Shape shape{{context_.sizes.tokens(), local_rows(table, context_.tensor()), table.columns}};
  const BufferId out = storage(state, module.outputs[0]);
  const BufferId partial = shards ? b_.alloc(Category::kTemporary,
                                             context_.activation_dtype,
                                             shape.extent[0] * shape.extent[2])
                                  : out;
  b_.compute(Work::kEmbedding,
             shape,
             {view(state, module.inputs[0]), weight(module.parameters[0])},
             {b_.whole(partial)});
  if (shards) {
    scatter_tokens(partial, out);
    b_.free(partial);
  } else if (cut) {
    reduce_tensor(out);
  }
}

void SegmentEmitter::embedding_backward(const ModuleDef& module,
                                        SegmentState& state,
                                        Gradients& gradients) {
  const bool shards = context_.tensor() > 1 && context_.sequence_parallel();
  const ParameterDef& table = form_->parameters[static_cast<std::size_t>(module.parameters[0])];
  const Shape shape{{context_.sizes.tokens(), local_rows(table, context_.tensor()), table.columns}};
  BufferId dy = take_gradient(gradients, module.outputs[0]);
  if (shards) {
    const BufferId whole = gather_tokens(dy);
    b_.release(dy);
    dy = whole;
  }
  const bool accumulate = gradient_targets(module.parameters, targets_);
  const View inputs[] = {b_.whole(dy), view(state, module.inputs[0])};
  b_.compute(Work::kEmbeddingGrad, shape, inputs, targets_, {.flags = accumulate_flag(accumulate)});
  b_.release(dy);
  gradients_ready(module.parameters);
}

}  // namespace lockstep
