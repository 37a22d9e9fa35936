#include "core/planner/stage_emitter.h"

#include <algorithm>

namespace lockstep {

bool is_regular(const Schedule& schedule, std::int32_t rank) {
  if (schedule.stages() == 1) {
    return true;
  }
  const std::int32_t count = schedule.microbatches;
  std::vector<std::int32_t> done(static_cast<std::size_t>(schedule.chunks) * kActionKindCount, 0);
  std::vector<bool> descends(done.size(), false);
  for (const Action& action : schedule.ranks[static_cast<std::size_t>(rank)]) {
    if (!is_compute(action.kind)) {
      continue;
    }
    const auto at =
        static_cast<std::size_t>(schedule.chunk_of_stage(action.stage)) * kActionKindCount +
        static_cast<std::size_t>(action.kind);
    const std::int32_t number = done[at]++;
    if (number == 0 && action.microbatch == count - 1 && count > 1) {
      descends[at] = action.kind != ActionKind::kForward;
    }
    if (action.microbatch != (descends[at] ? count - 1 - number : number)) {
      return false;
    }
  }
  return true;
}

StageEmitter::StageEmitter(const PlannerContext& context,
                           const StageLayout& stage,
                           const Schedule& schedule,
                           ProgramBuilder& builder,
                           DataParallelism& data,
                           const StageBuffers& buffers)
    : context_(context),
      stage_(stage),
      schedule_(schedule),
      b_(builder),
      data_(data),
      segments_(context, builder, data, buffers),
      folds_(builder.counting() && is_regular(schedule, stage.coordinate)),
      slots_(folds_ ? std::size_t{3} : static_cast<std::size_t>(context.microbatches)),
      uniform_(data.uniform_blocks() && !(context.training().recompute == Recompute::kFull &&
                                          context.training().recompute_every > 1)),
      states_(stage.segments.size() * slots_),
      progress_(static_cast<std::size_t>(stage.chunks())) {
  const std::size_t boundaries = static_cast<std::size_t>(stage.chunks()) * slots_;
  for (auto* buffers_of : {&activations_in_, &activations_out_, &gradients_in_, &gradients_out_}) {
    buffers_of->assign(boundaries, kNoBuffer);
  }
}

std::size_t StageEmitter::slot(std::int32_t microbatch) const {
  if (!folds_) {
    return static_cast<std::size_t>(microbatch);
  }
  return microbatch == 0 ? 0U : microbatch + 1 == context_.microbatches ? 2U : 1U;
}

namespace {

PieceId message_piece(const Action& action) {
  const int kind = static_cast<int>(PieceKind::kSendForward) + static_cast<int>(action.kind) -
                   static_cast<int>(ActionKind::kSendForward);
  PieceId id;
  id.kind = static_cast<PieceKind>(kind);
  return id;
}

}  // namespace

// ---- order -------------------------------------------------------------------------------------

void StageEmitter::run_step() {
  if (schedule_.stages() == 1) {
    run_microbatches();
  } else {
    run_actions(schedule_.ranks[static_cast<std::size_t>(stage_.coordinate)]);
  }
}

void StageEmitter::run_microbatches() {
  b_.repeat(context_.microbatches, [&](std::int64_t i) {
    const auto microbatch = static_cast<std::int32_t>(i);
    // Under counting the middle stands for many: progress follows the index, not the calls.
    progress_[0] = {microbatch, microbatch, microbatch};
    forward(0, microbatch, false);
    backward(0, microbatch, BackwardPart::kWhole);
  });
}

std::uint64_t StageEmitter::fold_key(const Action& action, const Progress& progress) const {
  const auto class_of = [&](std::int32_t number) -> std::uint64_t {
    return number == 0 ? 0U : number + 1 == context_.microbatches ? 2U : 1U;
  };
  std::int32_t done = progress.inputs;
  if (is_communication(action.kind)) {
    done = action.microbatch;
  } else if (action.kind == ActionKind::kForward) {
    done = progress.forwards;
  } else if (action.kind == ActionKind::kBackwardWeight) {
    done = progress.weights;
  }
  return (static_cast<std::uint64_t>(action.kind) << 32U) |
         (static_cast<std::uint64_t>(action.stage) << 8U) | (class_of(done) << 4U) |
         class_of(action.microbatch);
}

void StageEmitter::run_actions(const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    const int chunk = schedule_.chunk_of_stage(action.stage);
    Progress& progress = progress_[static_cast<std::size_t>(chunk)];
    if (folds_) {
      b_.once_per(
          fold_key(action, progress), {kNoModule, action.microbatch}, [&] { run_action(action); });
    } else {
      run_action(action);
    }
    if (action.kind == ActionKind::kForward) {
      ++progress.forwards;
    } else if (is_compute(action.kind)) {
      progress.inputs += action.kind == ActionKind::kBackwardWeight ? 0 : 1;
      progress.weights += action.kind == ActionKind::kBackwardInput ? 0 : 1;
    }
  }
}

void StageEmitter::run_action(const Action& action) {
  const int chunk = schedule_.chunk_of_stage(action.stage);
  switch (action.kind) {
    case ActionKind::kForward:
      return forward(chunk, action.microbatch, false);
    case ActionKind::kBackward:
      return backward(chunk, action.microbatch, BackwardPart::kWhole);
    case ActionKind::kBackwardInput:
      return backward(chunk, action.microbatch, BackwardPart::kInput);
    case ActionKind::kBackwardWeight:
      return backward(chunk, action.microbatch, BackwardPart::kWeight);
    case ActionKind::kSendForward:
    case ActionKind::kSendBackward:
      return b_.piece(message_piece(action), {kNoModule, action.microbatch}, [&] { send(action); });
    case ActionKind::kRecvForward:
    case ActionKind::kRecvBackward:
      return b_.piece(
          message_piece(action), {kNoModule, action.microbatch}, [&] { receive(action); });
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
    case ActionKind::kReduceGrad:
      return;  // the data-parallel kind decides when it gathers and reduces
  }
}

Pass StageEmitter::pass_of(int, std::int32_t microbatch, std::int32_t done) const {
  return {microbatch, done == 0, done + 1 == context_.microbatches};
}

PieceId StageEmitter::piece(PieceKind kind,
                            int position,
                            const Pass& pass,
                            BackwardPart part) const {
  PieceId id;
  id.kind = kind;
  id.weights = part == BackwardPart::kWeight;
  id.chunk = static_cast<std::int32_t>(
      std::upper_bound(stage_.chunk_begin.begin(), stage_.chunk_begin.end(), position) -
      stage_.chunk_begin.begin() - 1);
  id.position = position;
  id.order = pass.first_backward  ? (pass.last_backward ? PieceOrder::kOnly : PieceOrder::kFirst)
             : pass.last_backward ? PieceOrder::kLast
                                  : PieceOrder::kMiddle;
  const auto& segments = context_.graph->segments;
  const Segment& segment = segments[static_cast<std::size_t>(stage_.segment(position))];
  if (segment.layer < 0) {
    id.slot = stage_.segment(position) == 0 ? PieceSlot::kEmbedding : PieceSlot::kHead;
    return id;
  }
  const auto is_block = [&](int neighbour) {
    return neighbour >= stage_.begin(id.chunk) && neighbour < stage_.end(id.chunk) &&
           segments[static_cast<std::size_t>(stage_.segment(neighbour))].layer >= 0;
  };
  id.slot = !is_block(position - 1)   ? PieceSlot::kFirstBlock
            : !is_block(position + 1) ? PieceSlot::kLastBlock
                                      : PieceSlot::kMiddleBlock;
  return id;
}

Place StageEmitter::origin(int position, const Pass& pass) const {
  const Segment& segment =
      context_.graph->segments[static_cast<std::size_t>(stage_.segment(position))];
  return {static_cast<std::uint32_t>(segment.first_module), pass.microbatch};
}

// ---- computation -------------------------------------------------------------------------------

bool StageEmitter::drops(int position) const {
  const Segment& segment =
      context_.graph->segments[static_cast<std::size_t>(stage_.segment(position))];
  const TrainingSpec& training = context_.training();
  return training.recompute == Recompute::kFull && segment.layer >= 0 &&
         context_.graph->model.family == ModelFamily::kTransformer &&
         segment.layer % training.recompute_every == 0;
}

ForwardMode StageEmitter::forward_mode(int position, bool evaluate) const {
  if (evaluate) {
    return ForwardMode::kEvaluate;
  }
  return drops(position) ? ForwardMode::kDrop : ForwardMode::kTrain;
}

/// Tokens (or features) for the first stage, labels for the last.
void StageEmitter::load_batch(int chunk, std::int32_t microbatch) {
  const bool first = first_stage(chunk);
  const bool last = last_stage(chunk);
  if (!first && !last) {
    return;
  }
  const auto place = [&](int position, std::int8_t tensor) {
    const SegmentTemplate& form = context_.graph->form(
        context_.graph->segments[static_cast<std::size_t>(stage_.segment(position))]);
    const TensorDef& definition = form.tensors[static_cast<std::size_t>(tensor)];
    const BufferId id = b_.alloc(Category::kInput,
                                 dtype_of(definition.type, context_.training()),
                                 elements_of(definition, context_.graph->model, context_.sizes));
    state(position, microbatch).tensors[static_cast<std::size_t>(tensor)] = id;
    return b_.whole(id);
  };
  std::vector<View> outputs;
  // Who reads what was loaded: the first module, or, when there are only labels, the loss.
  const Segment& reader = context_.graph->segments[static_cast<std::size_t>(
      stage_.segment(first ? stage_.begin(chunk) : stage_.end(chunk) - 1))];
  const std::size_t module = first ? 0 : context_.graph->form(reader).modules.size() - 1;
  b_.at(b_.phase(),
        static_cast<std::uint32_t>(reader.first_module) + static_cast<std::uint32_t>(module),
        microbatch);
  if (first) {
    const int position = stage_.begin(chunk);
    const Segment& segment =
        context_.graph->segments[static_cast<std::size_t>(stage_.segment(position))];
    outputs.push_back(place(position, context_.graph->form(segment).input));
    boundary(activations_in_, chunk, microbatch) = outputs.back().buffer;
  }
  if (last) {
    const int position = stage_.end(chunk) - 1;
    const Segment& segment =
        context_.graph->segments[static_cast<std::size_t>(stage_.segment(position))];
    outputs.push_back(place(position, context_.graph->form(segment).modules.back().inputs[1]));
  }
  data_.load_batch(b_, Shape{{context_.sizes.batch, context_.sizes.seq}}, outputs);
}

void StageEmitter::forward(int chunk, std::int32_t microbatch, bool evaluate) {
  const Phase phase = evaluate ? Phase::kEvaluate : Phase::kForward;
  b_.at(phase, kNoModule, microbatch);
  const Pass pass = pass_of(chunk, microbatch, progress_[static_cast<std::size_t>(chunk)].forwards);
  constexpr auto kWhole = BackwardPart::kWhole;
  b_.piece(piece(PieceKind::kMicrobatch, stage_.begin(chunk), pass, kWhole),
           {kNoModule, microbatch},
           [&] {
             if (chunk == 0) {
               data_.begin_microbatch(b_, pass);
               b_.at(phase, kNoModule, microbatch);
             }
             load_batch(chunk, microbatch);
           });
  BufferId x = std::exchange(boundary(activations_in_, chunk, microbatch), kNoBuffer);
  for_each_position(b_, stage_, chunk, false, uniform_, [&](int position) {
    const std::int32_t segment = stage_.segment(position);
    SegmentState& at = state(position, microbatch);
    const SegmentTemplate& form =
        context_.graph->form(context_.graph->segments[static_cast<std::size_t>(segment)]);
    const Place place = origin(position, pass);
    b_.at(phase, kNoModule, microbatch);
    b_.piece(piece(PieceKind::kBeforeForward, position, pass, kWhole), place, [&] {
      data_.before_forward(b_, position, pass);
    });
    at.tensors[static_cast<std::size_t>(form.input)] = x;
    b_.piece(piece(PieceKind::kForward, position, pass, kWhole), place, [&] {
      segments_.forward(segment, at, pass, forward_mode(position, evaluate));
    });
    const auto out =
        static_cast<std::size_t>(form.tensors[static_cast<std::size_t>(form.output)].storage);
    const bool ends_in_loss = form.modules.back().kind == ModuleKind::kLoss;
    x = ends_in_loss ? kNoBuffer : std::exchange(at.tensors[out], kNoBuffer);
    if (ends_in_loss && evaluate) {
      b_.release(std::exchange(at.tensors[out], kNoBuffer));
    }
    b_.piece(piece(PieceKind::kAfterForward, position, pass, kWhole), place, [&] {
      data_.after_forward(b_, position, pass);
    });
  });
  if (last_stage(chunk)) {
    return;
  }
  if (schedule_.crosses_ranks_after(virtual_stage(chunk))) {
    boundary(activations_out_, chunk, microbatch) = x;
  } else {
    const int next = schedule_.chunk_of_stage(virtual_stage(chunk) + 1);
    boundary(activations_in_, next, microbatch) = x;
  }
}

void StageEmitter::backward(int chunk, std::int32_t microbatch, BackwardPart part) {
  const Progress& progress = progress_[static_cast<std::size_t>(chunk)];
  const Pass pass = pass_of(
      chunk, microbatch, part == BackwardPart::kWeight ? progress.weights : progress.inputs);
  BufferId dy = part == BackwardPart::kWeight
                    ? kNoBuffer
                    : std::exchange(boundary(gradients_in_, chunk, microbatch), kNoBuffer);
  const Phase phase = part == BackwardPart::kWhole   ? Phase::kBackward
                      : part == BackwardPart::kInput ? Phase::kBackwardInput
                                                     : Phase::kBackwardWeight;
  for_each_position(b_, stage_, chunk, true, uniform_, [&](int position) {
    const std::int32_t segment = stage_.segment(position);
    SegmentState& at = state(position, microbatch);
    const Place place = origin(position, pass);
    b_.at(phase, kNoModule, microbatch);
    if (part != BackwardPart::kWeight) {
      b_.piece(piece(PieceKind::kBeforeBackward, position, pass, part), place, [&] {
        data_.before_backward(b_, position, pass);
      });
    }
    b_.piece(piece(PieceKind::kBackward, position, pass, part), place, [&] {
      if (part != BackwardPart::kWeight && drops(position)) {
        segments_.forward(segment, at, pass, ForwardMode::kRecompute);
        const SegmentTemplate& form =
            context_.graph->form(context_.graph->segments[static_cast<std::size_t>(segment)]);
        b_.release(std::exchange(at.tensors[static_cast<std::size_t>(form.output)], kNoBuffer));
      }
      dy = segments_.backward(segment, at, dy, pass, part);
    });
    if (part != BackwardPart::kInput) {
      b_.at(Phase::kReduce, kNoModule, microbatch);
      b_.piece(piece(PieceKind::kAfterBackward, position, pass, part), place, [&] {
        data_.after_backward(b_, position, pass);
      });
    }
  });
  if (part != BackwardPart::kWeight && !first_stage(chunk)) {
    const std::int32_t previous = virtual_stage(chunk) - 1;
    if (schedule_.crosses_ranks_after(previous)) {
      boundary(gradients_out_, chunk, microbatch) = dy;
    } else {
      boundary(gradients_in_, schedule_.chunk_of_stage(previous), microbatch) = dy;
    }
  }
  if (part != BackwardPart::kInput && chunk == 0) {
    b_.piece(piece(PieceKind::kMicrobatchEnd, stage_.begin(chunk), pass, part),
             {kNoModule, microbatch},
             [&] { data_.end_microbatch(b_, pass); });
  }
}

// ---- point to point ----------------------------------------------------------------------------

std::int64_t StageEmitter::boundary_elements() const {
  return context_.sizes.region_tokens() * context_.graph->model.hidden;
}

namespace {

/// Distinct for every (direction, virtual stage that sends forward, micro-batch).
std::uint32_t tag_of(bool forward,
                     std::int32_t stage,
                     std::int32_t microbatches,
                     std::int32_t microbatch) {
  return static_cast<std::uint32_t>((stage * microbatches + microbatch) * 2 + (forward ? 0 : 1));
}

}  // namespace

void StageEmitter::send(const Action& action) {
  const bool forward = action.kind == ActionKind::kSendForward;
  const int chunk = schedule_.chunk_of_stage(action.stage);
  b_.at(forward ? Phase::kForward : Phase::kBackward, kNoModule, action.microbatch);
  const BufferId buffer = std::exchange(
      boundary(forward ? activations_out_ : gradients_out_, chunk, action.microbatch), kNoBuffer);
  const int peer = schedule_.rank_of_stage(action.stage + (forward ? 1 : -1));
  const std::int32_t boundary_stage = forward ? action.stage : action.stage - 1;
  b_.send(b_.tables().communicator(mask_of(Axis::kPipeline)),
          peer,
          tag_of(forward, boundary_stage, context_.microbatches, action.microbatch),
          b_.whole(buffer));
  b_.release(buffer);
}

void StageEmitter::receive(const Action& action) {
  const bool forward = action.kind == ActionKind::kRecvForward;
  const int chunk = schedule_.chunk_of_stage(action.stage);
  b_.at(forward ? Phase::kForward : Phase::kBackward, kNoModule, action.microbatch);
  const BufferId buffer =
      b_.alloc(Category::kActivation, context_.activation_dtype, boundary_elements());
  const int peer = schedule_.rank_of_stage(action.stage + (forward ? -1 : 1));
  const std::int32_t boundary_stage = forward ? action.stage - 1 : action.stage;
  b_.recv(b_.tables().communicator(mask_of(Axis::kPipeline)),
          peer,
          tag_of(forward, boundary_stage, context_.microbatches, action.microbatch),
          b_.whole(buffer));
  boundary(forward ? activations_in_ : gradients_in_, chunk, action.microbatch) = buffer;
}

// ---- evaluation --------------------------------------------------------------------------------

void StageEmitter::run_evaluation() {
  for (std::int32_t microbatch = 0; microbatch < context_.microbatches; ++microbatch) {
    for (int chunk = 0; chunk < stage_.chunks(); ++chunk) {
      const std::int32_t stage = virtual_stage(chunk);
      if (stage > 0 && schedule_.crosses_ranks_after(stage - 1)) {
        receive({ActionKind::kRecvForward, stage, microbatch});
      }
      forward(chunk, microbatch, true);
      if (stage + 1 < schedule_.stages() && schedule_.crosses_ranks_after(stage)) {
        send({ActionKind::kSendForward, stage, microbatch});
      }
    }
  }
}

}  // namespace lockstep
