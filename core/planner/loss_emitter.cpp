// Cross-entropy of SegmentEmitter. With a vocabulary cut over tp it is Megatron-LM's vocab-parallel
// cross-entropy: three all-reduces of [tokens] numbers instead of gathering the logits.
#include "core/planner/segment_emitter.h"

namespace lockstep {

void SegmentEmitter::loss_forward(const ModuleDef& module, SegmentState& state) {
  const bool cut = context_.tensor() > 1;
  const std::int64_t tokens = context_.sizes.tokens();
  BufferId& logits = storage(state, module.inputs[0]);
  const BufferId labels = storage(state, module.inputs[1]);
  if (b_.buffer(logits).dtype != context_.wide_dtype) {
    const BufferId wide =
        b_.alloc(Category::kLogits, context_.wide_dtype, b_.buffer(logits).elements);
    b_.compute(
        Work::kCast, Shape{{b_.buffer(logits).elements}}, {b_.whole(logits)}, {b_.whole(wide)});
    b_.release(logits);
    logits = wide;
  }
  const Shape shape{{tokens, b_.buffer(logits).elements / tokens, tensor(module.inputs[0]).width}};
  const auto row_numbers = [&] {
    return b_.alloc(Category::kTemporary, context_.wide_dtype, tokens);
  };
  const auto reduce = [&](BufferId buffer, Reduction reduction) {
    if (cut) {
      b_.collective(Collective::kAllReduce,
                    tensor_communicator(),
                    reduction,
                    tokens,
                    b_.whole(buffer),
                    b_.whole(buffer),
                    {.stream = Stream::kTensor});
    }
  };
  const BufferId maximum = row_numbers();
  b_.compute(Work::kLossLocalMax, shape, {b_.whole(logits)}, {b_.whole(maximum)});
  reduce(maximum, Reduction::kMax);
  const BufferId sums = row_numbers();
  const BufferId target = row_numbers();
  b_.compute(Work::kLossLocalSums,
             shape,
             {b_.whole(logits), b_.whole(maximum), b_.whole(labels)},
             {b_.whole(sums), b_.whole(target)});
  reduce(sums, Reduction::kSum);
  reduce(target, Reduction::kSum);
  operands_.assign(
      {b_.whole(logits), b_.whole(maximum), b_.whole(sums), b_.whole(target), b_.whole(labels)});
  const bool evaluate = mode_ == ForwardMode::kEvaluate;
  if (buffers_.scaler != kNoBuffer && !evaluate) {
    operands_.push_back(b_.whole(buffers_.scaler));
  }
  if (buffers_.token_count != kNoBuffer) {
    operands_.push_back(b_.whole(buffers_.token_count));
  }
  const View results[] = {b_.whole(buffers_.loss), b_.whole(logits)};
  const bool by_tokens = context_.training().loss_mean == LossMean::kGlobalTokens;
  const std::uint16_t scalar =
      by_tokens
          ? b_.tables().scalar({Scalar::Source::kOperation, Scalar::Meaning::kInverseTokens, 1, 1})
          : b_.tables().factor(1, context_.microbatches * data_.loss_divisor());
  b_.compute(Work::kLossFinish,
             shape,
             operands_,
             Views(results, evaluate ? 1 : 2),
             {.flags = accumulate_flag(pass_.microbatch > 0), .scalar = scalar});
  b_.free(maximum);
  b_.free(sums);
  b_.free(target);
  data_.after_loss(b_, b_.whole(logits));
}

void SegmentEmitter::loss_backward(const ModuleDef& module,
                                   SegmentState& state,
                                   Gradients& gradients) {
  // The loss was finished in forward: what the logits buffer holds is their gradient.
  BufferId dlogits = std::exchange(storage(state, module.inputs[0]), kNoBuffer);
  if (b_.buffer(dlogits).dtype != context_.activation_dtype) {
    const BufferId narrow =
        b_.alloc(Category::kLogits, context_.activation_dtype, b_.buffer(dlogits).elements);
    b_.compute(
        Work::kCast, Shape{{b_.buffer(dlogits).elements}}, {b_.whole(dlogits)}, {b_.whole(narrow)});
    b_.release(dlogits);
    dlogits = narrow;
  }
  add_gradient(gradients, module.inputs[0], dlogits);
}

}  // namespace lockstep
