#include "core/planner/segment_emitter.h"

namespace lockstep {

SegmentEmitter::SegmentEmitter(const PlannerContext& context,
                               ProgramBuilder& builder,
                               DataParallelism& data,
                               const StageBuffers& buffers)
    : context_(context), b_(builder), data_(data), buffers_(buffers) {}

// ---- forward -----------------------------------------------------------------------------------

void SegmentEmitter::forward(std::int32_t segment,
                             SegmentState& state,
                             const Pass& pass,
                             ForwardMode mode) {
  segment_ = &context_.graph->segments[static_cast<std::size_t>(segment)];
  form_ = &context_.graph->form(*segment_);
  pass_ = pass;
  mode_ = mode;
  LOCKSTEP_CHECK(form_->tensors.size() <= kMaxTensors, "segment has too many tensors");
  const Phase phase = mode == ForwardMode::kRecompute  ? Phase::kRecompute
                      : mode == ForwardMode::kEvaluate ? Phase::kEvaluate
                                                       : Phase::kForward;
  const int count = static_cast<int>(form_->modules.size());
  for (int module = 0; module < count; ++module) {
    b_.at(phase, static_cast<std::uint32_t>(segment_->first_module + module), pass.microbatch);
    forward_module(module, state);
    release_after_forward(module, state);
  }
}

void SegmentEmitter::forward_module(int index, SegmentState& state) {
  const ModuleDef& module = form_->modules[static_cast<std::size_t>(index)];
  if (module.kind == ModuleKind::kDropout && mode_ == ForwardMode::kEvaluate) {
    // Evaluation drops nothing: the output is the input.
    std::swap(storage(state, module.outputs[0]), storage(state, module.inputs[0]));
    return;
  }
  allocate_outputs(module, state);
  switch (module.kind) {
    case ModuleKind::kEmbedding:
      return embedding_forward(module, state);
    case ModuleKind::kLinear:
      return linear_forward(module, state);
    case ModuleKind::kNorm:
    case ModuleKind::kHeadNorm:
      return norm_forward(module, state);
    case ModuleKind::kAttention:
      return attention_forward(module, state);
    case ModuleKind::kBatchNorm:
      return batch_norm_forward(module, state);
    case ModuleKind::kLoss:
      return loss_forward(module, state);
    case ModuleKind::kRouter:
    case ModuleKind::kDispatch:
    case ModuleKind::kCombine:
      return experts_forward(module, state);
    case ModuleKind::kPosition:
    case ModuleKind::kRope:
    case ModuleKind::kActivation:
    case ModuleKind::kDropout:
    case ModuleKind::kResidual:
      return simple_forward(module, state);
  }
}

void SegmentEmitter::allocate_outputs(const ModuleDef& module, SegmentState& state) {
  const bool evaluate = mode_ == ForwardMode::kEvaluate;
  for (const std::int8_t index : module.outputs) {
    const TensorDef& definition = tensor(index);
    const bool is_statistic =
        index != module.outputs.front() &&
        (module.kind == ModuleKind::kBatchNorm ||
         (module.kind == ModuleKind::kAttention && index != module.outputs[1]));
    const bool only_for_training = evaluate && is_statistic;
    if (definition.alias || only_for_training) {
      continue;
    }
    const bool logits = index == form_->output && form_->modules.back().kind == ModuleKind::kLoss;
    storage(state, index) =
        allocate(definition, logits ? Category::kLogits : Category::kActivation);
  }
}

BufferId SegmentEmitter::allocate(const TensorDef& definition, Category category) {
  return b_.alloc(category,
                  dtype_of(definition.type, context_.training()),
                  elements_of(definition, context_.graph->model, context_.sizes));
}

void SegmentEmitter::release_after_forward(int index, SegmentState& state) {
  const ModuleDef& module = form_->modules[static_cast<std::size_t>(index)];
  const bool keeps = mode_ == ForwardMode::kTrain || mode_ == ForwardMode::kRecompute;
  const auto release = [&](std::int8_t name) {
    const std::int8_t owner = tensor(name).storage;
    const TensorDef& definition = tensor(owner);
    BufferId& buffer = state.tensors[static_cast<std::size_t>(owner)];
    const bool is_output = owner == tensor(form_->output).storage;
    const bool is_checkpoint =
        owner == form_->input && mode_ != ForwardMode::kEvaluate && mode_ != ForwardMode::kTrain;
    if (definition.last_reader != index || buffer == kNoBuffer || is_output || is_checkpoint ||
        (keeps && definition.saved())) {
      return;
    }
    b_.release(buffer);
    buffer = kNoBuffer;
  };
  for (const std::int8_t name : module.inputs) {
    release(name);
  }
  for (const std::int8_t name : module.outputs) {
    release(name);
  }
  const bool selective = context_.training().recompute == Recompute::kSelective &&
                         module.kind == ModuleKind::kAttention && !module.saves_output;
  if (selective && mode_ == ForwardMode::kTrain) {
    for (std::size_t i = 1; i < module.outputs.size(); ++i) {
      b_.release(storage(state, module.outputs[i]));
      storage(state, module.outputs[i]) = kNoBuffer;
    }
  }
}

void SegmentEmitter::simple_forward(const ModuleDef& module, SegmentState& state) {
  const std::int8_t out = module.outputs[0];
  const View x = view(state, module.inputs[0]);
  const View y = view(state, out);
  switch (module.kind) {
    case ModuleKind::kPosition:
      b_.compute(Work::kPosition,
                 rows_shape(tensor(out)),
                 {x, weight(module.parameters[0])},
                 {y},
                 {.flags = kInPlace});
      break;
    case ModuleKind::kRope:
      b_.compute(Work::kRope, head_shape(), {x}, {y}, {.flags = kInPlace});
      break;
    case ModuleKind::kActivation: {
      const ActivationKind kind = context_.graph->model.activation;
      const bool relu =
          context_.graph->model.family == ModelFamily::kMlp || kind == ActivationKind::kRelu;
      const Work work = relu                              ? Work::kRelu
                        : kind == ActivationKind::kSwiGlu ? Work::kSwiGlu
                                                          : Work::kGelu;
      b_.compute(work, rows_shape(tensor(out)), {x}, {y});
      break;
    }
    case ModuleKind::kDropout:
      b_.compute(Work::kDropout, rows_shape(tensor(out)), {x}, {y, view(state, module.outputs[1])});
      break;
    default:
      b_.compute(Work::kAdd, Shape{{y.elements}}, {x, view(state, module.inputs[1])}, {y});
      break;
  }
}

void SegmentEmitter::norm_forward(const ModuleDef& module, SegmentState& state) {
  operands_.assign(1, view(state, module.inputs[0]));
  for (const std::int16_t parameter : module.parameters) {
    operands_.push_back(weight(parameter));
  }
  const View outputs[] = {view(state, module.outputs[0]), view(state, module.outputs[1])};
  b_.compute(Work::kNorm, rows_shape(tensor(module.outputs[0])), operands_, outputs);
}

void SegmentEmitter::attention_forward(const ModuleDef& module, SegmentState& state) {
  operands_.clear();
  for (const std::int8_t output : module.outputs) {
    if (storage(state, output) != kNoBuffer) {
      operands_.push_back(view(state, output));
    }
  }
  const View qkv = view(state, module.inputs[0]);
  b_.compute(module.saves_output ? Work::kFlashAttention : Work::kAttention,
             head_shape(),
             Views(&qkv, 1),
             operands_);
}

void SegmentEmitter::experts_forward(const ModuleDef& module, SegmentState& state) {
  const ModelSpec& model = context_.graph->model;
  const std::int64_t tokens = context_.sizes.region_tokens();
  const std::int64_t top = model.experts_per_token;
  if (module.kind == ModuleKind::kRouter) {
    b_.compute(Work::kRoute,
               Shape{{tokens, model.experts, top}},
               {view(state, module.inputs[0])},
               {view(state, module.outputs[0]), view(state, module.outputs[1])});
    return;
  }
  operands_.clear();
  for (const std::int8_t input : module.inputs) {
    operands_.push_back(view(state, input));
  }
  const View out = view(state, module.outputs[0]);
  b_.compute(module.kind == ModuleKind::kDispatch ? Work::kDispatch : Work::kCombine,
             Shape{{tokens, model.hidden, top}},
             operands_,
             Views(&out, 1));
}

// ---- backward ----------------------------------------------------------------------------------

BufferId SegmentEmitter::backward(
    std::int32_t segment, SegmentState& state, BufferId dy, const Pass& pass, BackwardPart part) {
  segment_ = &context_.graph->segments[static_cast<std::size_t>(segment)];
  form_ = &context_.graph->form(*segment_);
  pass_ = pass;
  mode_ = ForwardMode::kTrain;
  part_ = part;
  const Phase phase = part == BackwardPart::kWhole   ? Phase::kBackward
                      : part == BackwardPart::kInput ? Phase::kBackwardInput
                                                     : Phase::kBackwardWeight;
  Gradients gradients;
  if (part == BackwardPart::kWeight) {
    for (const SegmentState::Deferred& deferred : state.deferred) {
      b_.at(phase,
            static_cast<std::uint32_t>(segment_->first_module + deferred.module),
            pass.microbatch);
      const ModuleDef& module = form_->modules[static_cast<std::size_t>(deferred.module)];
      const bool gather = module.cut == LinearCut::kColumn && context_.sequence_parallel() &&
                          b_.buffer(deferred.x).elements < expected_input(module);
      const BufferId x = gather ? gather_tokens(deferred.x) : deferred.x;
      linear_weight_gradient(module, b_.whole(deferred.dy), b_.whole(x));
      if (gather) {
        b_.free(x);
      }
      b_.release(deferred.x);
      b_.release(deferred.dy);
    }
    state.deferred.clear();
    reduce_partial_gradients();
    return kNoBuffer;
  }
  if (dy != kNoBuffer) {
    gradients.of[static_cast<std::size_t>(form_->output)] = dy;
  }
  for (int module = static_cast<int>(form_->modules.size()) - 1; module >= 0; --module) {
    b_.at(phase, static_cast<std::uint32_t>(segment_->first_module + module), pass.microbatch);
    backward_module(module, state, gradients);
    release_after_backward(module, state);
  }
  reduce_partial_gradients();
  return gradients.of[static_cast<std::size_t>(form_->input)];
}

void SegmentEmitter::backward_module(int index, SegmentState& state, Gradients& gradients) {
  const ModuleDef& module = form_->modules[static_cast<std::size_t>(index)];
  switch (module.kind) {
    case ModuleKind::kEmbedding:
      return embedding_backward(module, state, gradients);
    case ModuleKind::kLinear:
      return linear_backward(index, state, gradients);
    case ModuleKind::kNorm:
    case ModuleKind::kHeadNorm:
      return norm_backward(module, state, gradients);
    case ModuleKind::kAttention:
      return attention_backward(module, state, gradients);
    case ModuleKind::kBatchNorm:
      return batch_norm_backward(module, state, gradients);
    case ModuleKind::kLoss:
      return loss_backward(module, state, gradients);
    case ModuleKind::kRouter:
    case ModuleKind::kDispatch:
    case ModuleKind::kCombine:
      return experts_backward(module, state, gradients);
    case ModuleKind::kResidual:
      return residual_backward(module, gradients);
    case ModuleKind::kPosition:
    case ModuleKind::kRope:
    case ModuleKind::kActivation:
    case ModuleKind::kDropout:
      return simple_backward(module, state, gradients);
  }
}

void SegmentEmitter::release_after_backward(int index, SegmentState& state) {
  for (const std::int8_t owner : form_->modules[static_cast<std::size_t>(index)].saved) {
    BufferId& buffer = state.tensors[static_cast<std::size_t>(owner)];
    if (tensor(owner).first_saver == index && buffer != kNoBuffer) {
      b_.release(buffer);
      buffer = kNoBuffer;
    }
  }
}

void SegmentEmitter::simple_backward(const ModuleDef& module,
                                     SegmentState& state,
                                     Gradients& gradients) {
  const std::int8_t in = module.inputs[0];
  const BufferId dy = take_gradient(gradients, module.outputs[0]);
  if (module.kind == ModuleKind::kRope) {
    b_.compute(Work::kRopeGrad, head_shape(), {b_.whole(dy)}, {b_.whole(dy)}, {.flags = kInPlace});
    add_gradient(gradients, in, dy);
    return;
  }
  if (module.kind == ModuleKind::kPosition) {
    const bool accumulate = gradient_targets(module.parameters, targets_);
    const View dy_view = b_.whole(dy);
    b_.compute(Work::kPositionGrad,
               rows_shape(tensor(in)),
               Views(&dy_view, 1),
               targets_,
               {.flags = accumulate_flag(accumulate)});
    gradients_ready(module.parameters);
    add_gradient(gradients, in, dy);
    return;
  }
  const BufferId dx = allocate_gradient(in);
  if (module.kind == ModuleKind::kDropout) {
    b_.compute(Work::kDropoutGrad,
               rows_shape(tensor(in)),
               {b_.whole(dy), view(state, module.outputs[1])},
               {b_.whole(dx)});
  } else {
    const ActivationKind kind = context_.graph->model.activation;
    const bool relu =
        context_.graph->model.family == ModelFamily::kMlp || kind == ActivationKind::kRelu;
    const Work work = relu                              ? Work::kReluGrad
                      : kind == ActivationKind::kSwiGlu ? Work::kSwiGluGrad
                                                        : Work::kGeluGrad;
    b_.compute(work,
               rows_shape(tensor(module.outputs[0])),
               {b_.whole(dy), view(state, in)},
               {b_.whole(dx)});
  }
  b_.release(dy);
  add_gradient(gradients, in, dx);
}

void SegmentEmitter::residual_backward(const ModuleDef& module, Gradients& gradients) {
  // d(a + b) is the same gradient for both: shared, not copied.
  const BufferId dy = take_gradient(gradients, module.outputs[0]);
  b_.retain(dy);
  add_gradient(gradients, module.inputs[0], dy);
  add_gradient(gradients, module.inputs[1], dy);
}

void SegmentEmitter::norm_backward(const ModuleDef& module,
                                   SegmentState& state,
                                   Gradients& gradients) {
  const std::int8_t in = module.inputs[0];
  const BufferId dy = take_gradient(gradients, module.outputs[0]);
  const BufferId dx = allocate_gradient(in);
  operands_.assign({b_.whole(dy), view(state, in), view(state, module.outputs[1])});
  for (const std::int16_t parameter : module.parameters) {
    if (!form_->parameters[static_cast<std::size_t>(parameter)].suffix.ends_with("bias")) {
      operands_.push_back(weight(parameter));
    }
  }
  const bool accumulate = gradient_targets(module.parameters, targets_);
  targets_.insert(targets_.begin(), b_.whole(dx));
  b_.compute(Work::kNormGrad,
             rows_shape(tensor(in)),
             operands_,
             targets_,
             {.flags = accumulate_flag(accumulate)});
  gradients_ready(module.parameters);
  b_.release(dy);
  add_gradient(gradients, in, dx);
}

void SegmentEmitter::attention_backward(const ModuleDef& module,
                                        SegmentState& state,
                                        Gradients& gradients) {
  const std::int8_t in = module.inputs[0];
  const BufferId dy = take_gradient(gradients, module.outputs[0]);
  const bool recompute = storage(state, module.outputs.back()) == kNoBuffer;
  if (recompute) {
    const Phase phase = b_.phase();
    b_.at_phase(Phase::kRecompute);
    allocate_outputs(module, state);
    attention_forward(module, state);
    b_.release(storage(state, module.outputs[0]));
    storage(state, module.outputs[0]) = kNoBuffer;
    b_.at_phase(phase);
  }
  const BufferId dx = allocate_gradient(in);
  operands_.assign({b_.whole(dy), view(state, in)});
  for (std::size_t i = module.saves_output ? 0 : 1; i < module.outputs.size(); ++i) {
    operands_.push_back(view(state, module.outputs[i]));
  }
  const View dx_view = b_.whole(dx);
  b_.compute(module.saves_output ? Work::kFlashAttentionGrad : Work::kAttentionGrad,
             head_shape(),
             operands_,
             Views(&dx_view, 1));
  b_.release(dy);
  add_gradient(gradients, in, dx);
}

void SegmentEmitter::experts_backward(const ModuleDef& module,
                                      SegmentState& state,
                                      Gradients& gradients) {
  const ModelSpec& model = context_.graph->model;
  const std::int64_t tokens = context_.sizes.region_tokens();
  const std::int64_t top = model.experts_per_token;
  const std::int8_t in = module.inputs[0];
  const BufferId dy = take_gradient(gradients, module.outputs[0]);
  const BufferId dx = allocate_gradient(in);
  if (module.kind == ModuleKind::kRouter) {
    b_.compute(Work::kRouteGrad,
               Shape{{tokens, model.experts, top}},
               {b_.whole(dy), view(state, in), view(state, module.outputs[1])},
               {b_.whole(dx)});
  } else if (module.kind == ModuleKind::kDispatch) {
    b_.compute(Work::kDispatchGrad,
               Shape{{tokens, model.hidden, top}},
               {b_.whole(dy), view(state, module.inputs[1])},
               {b_.whole(dx)});
  } else {
    const BufferId dweights = allocate_gradient(module.inputs[1]);
    b_.compute(Work::kCombineGrad,
               Shape{{tokens, model.hidden, top}},
               {b_.whole(dy),
                view(state, in),
                view(state, module.inputs[1]),
                view(state, module.inputs[2])},
               {b_.whole(dx), b_.whole(dweights)});
    add_gradient(gradients, module.inputs[1], dweights);
  }
  b_.release(dy);
  add_gradient(gradients, in, dx);
}

// ---- gradients ---------------------------------------------------------------------------------

BufferId SegmentEmitter::allocate_gradient(std::int8_t index) {
  return allocate(tensor(index), Category::kActivation);
}

BufferId SegmentEmitter::take_gradient(Gradients& gradients, std::int8_t index) {
  BufferId& slot = gradients.of[static_cast<std::size_t>(index)];
  LOCKSTEP_CHECK(slot != kNoBuffer, "a module's output has no gradient");
  return std::exchange(slot, kNoBuffer);
}

void SegmentEmitter::add_gradient(Gradients& gradients, std::int8_t index, BufferId gradient) {
  BufferId& slot = gradients.of[static_cast<std::size_t>(index)];
  if (slot == kNoBuffer) {
    slot = gradient;
    return;
  }
  // In place unless somebody else still reads the sum so far.
  const BufferId sum = b_.sole_owner(slot) ? slot : allocate_gradient(index);
  Extras extras;
  extras.flags = sum == slot ? kInPlace : 0;
  b_.compute(Work::kAdd,
             Shape{{b_.buffer(slot).elements}},
             {b_.whole(slot), b_.whole(gradient)},
             {b_.whole(sum)},
             extras);
  if (sum != slot) {
    b_.release(slot);
    slot = sum;
  }
  b_.release(gradient);
}

bool SegmentEmitter::gradient_targets(std::span<const std::int16_t> parameters,
                                      std::vector<View>& targets) {
  targets.clear();
  bool accumulate = false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const GradientTarget target = data_.gradient(b_, parameter_id(parameters[i]), pass_);
    LOCKSTEP_CHECK(i == 0 || accumulate == target.accumulate,
                   "gradients of one module disagree on accumulation");
    accumulate = target.accumulate;
    targets.push_back(target.view);
  }
  return accumulate;
}

void SegmentEmitter::gradients_ready(std::span<const std::int16_t> parameters) {
  const Phase phase = b_.phase();
  // Autograd finishes a module's parameters in reverse: bias, then weight.
  for (auto it = parameters.rbegin(); it != parameters.rend(); ++it) {
    const ParameterDef& definition = form_->parameters[static_cast<std::size_t>(*it)];
    if (context_.partial_gradient(definition) && data_.reduces(pass_)) {
      partial_.push_back(*it);
    } else {
      data_.gradient_ready(b_, parameter_id(*it), pass_);
    }
  }
  b_.at_phase(phase);  // what a reduction began does not name the rest of the module
}

void SegmentEmitter::reduce_partial_gradients() {
  if (partial_.empty()) {
    return;
  }
  // One message for the segment's replicated parameters (Megatron-LM: finalize_model_grads).
  b_.at_phase(Phase::kReduce);
  std::int64_t elements = 0;
  targets_.clear();
  for (const std::int16_t parameter : partial_) {
    targets_.push_back(data_.gradient(b_, parameter_id(parameter), pass_).view);
    elements += targets_.back().elements;
  }
  const BufferId flat = b_.alloc(Category::kCommunication, context_.gradient_dtype, elements);
  const View flat_view = b_.whole(flat);
  b_.compute(Work::kPack, Shape{{elements}}, targets_, Views(&flat_view, 1));
  reduce_tensor(flat);
  b_.compute(Work::kUnpack, Shape{{elements}}, Views(&flat_view, 1), targets_);
  b_.free(flat);
  const std::vector<std::int16_t> ready = std::exchange(partial_, {});
  for (const std::int16_t parameter : ready) {
    data_.gradient_ready(b_, parameter_id(parameter), pass_);
  }
}

// ---- shapes ------------------------------------------------------------------------------------

Shape SegmentEmitter::head_shape() const {
  const ModelSpec& model = context_.graph->model;
  const std::int64_t t = context_.tensor();
  return Shape{{context_.sizes.batch,
                context_.sizes.seq,
                model.heads / t,
                model.kv_heads / t,
                model.head_dim}};
}

Shape SegmentEmitter::rows_shape(const TensorDef& definition) const {
  const std::int64_t elements = elements_of(definition, context_.graph->model, context_.sizes);
  const std::int64_t tokens = definition.region == Region::kTokens ? context_.sizes.region_tokens()
                                                                   : context_.sizes.tokens();
  const std::int64_t rows = tokens * definition.per_token;
  return Shape{{rows, elements / rows}};
}

}  // namespace lockstep
