#include "core/planner/optimizer.h"

#include <vector>

namespace lockstep {
namespace {

/// Ranks that together hold every parameter element: what norms and overflow flags go over.
AxisMask partition_axes(const PlannerContext& context, const DataParallelism& data) {
  return static_cast<AxisMask>(mask_of(Axis::kPipeline) | mask_of(Axis::kTensor) |
                               data.sharded_axes()) &
         present_axes(context.mesh);
}

void reduce_number(ProgramBuilder& b, AxisMask axes, Reduction reduction, BufferId number) {
  if (axes != 0) {
    b.collective(Collective::kAllReduce,
                 b.tables().communicator(axes),
                 reduction,
                 1,
                 b.whole(number),
                 b.whole(number),
                 {.stream = Stream::kData});
  }
}

std::vector<View> gradients_of(std::span<const OwnedPiece> pieces) {
  std::vector<View> views;
  views.reserve(pieces.size());
  for (const OwnedPiece& piece : pieces) {
    views.push_back(piece.gradient);
  }
  return views;
}

std::int64_t elements_in(std::span<const OwnedPiece> pieces) {
  std::int64_t elements = 0;
  for (const OwnedPiece& piece : pieces) {
    elements += piece.elements;
  }
  return elements;
}

/// fp16: gradients / loss scale; the flag says whether any on any rank is inf or NaN.
void unscale(ProgramBuilder& b,
             const PlannerContext& context,
             const StageBuffers& buffers,
             DataParallelism& data) {
  b.at(Phase::kClip);
  const View flag = b.whole(buffers.overflow);
  b.compute(Work::kZero, Shape{{1}}, {}, Views(&flag, 1));
  data.for_each_normed(b, [&](std::span<const OwnedPiece> pieces) {
    if (pieces.empty()) {
      return;
    }
    std::vector<View> inputs = gradients_of(pieces);
    std::vector<View> outputs{flag};
    outputs.insert(outputs.end(), inputs.begin(), inputs.end());
    inputs.push_back(b.whole(buffers.scaler));
    b.compute(
        Work::kUnscaleAndCheck, Shape{{elements_in(pieces)}}, inputs, outputs, {.flags = kInPlace});
  });
  reduce_number(b, partition_axes(context, data), Reduction::kMax, buffers.overflow);
  data.share_overflow(b, flag);
}

void clip(ProgramBuilder& b, const PlannerContext& context, DataParallelism& data) {
  b.at(Phase::kClip);
  const BufferId norm = b.alloc(Category::kTemporary, DType::kFp64, 1);
  const View norm_view = b.whole(norm);
  b.compute(Work::kZero, Shape{{1}}, {}, Views(&norm_view, 1));
  data.for_each_normed(b, [&](std::span<const OwnedPiece> pieces) {
    for (const OwnedPiece& piece : pieces) {
      b.compute(Work::kSumSquares,
                Shape{{piece.elements}},
                Views(&piece.gradient, 1),
                Views(&norm_view, 1),
                {.flags = kAccumulate, .layout = piece.layout});
    }
  });
  reduce_number(b, partition_axes(context, data), Reduction::kSum, norm);
  const BufferId coefficient = b.alloc(Category::kTemporary, DType::kFp64, 1);
  const View factor = b.whole(coefficient);
  b.compute(Work::kClipCoefficient, Shape{{1}}, Views(&norm_view, 1), Views(&factor, 1));
  data.for_each_normed(b, [&](std::span<const OwnedPiece> pieces) {
    for (const OwnedPiece& piece : pieces) {
      const View inputs[] = {piece.gradient, factor};
      b.compute(Work::kScale,
                Shape{{piece.elements}},
                inputs,
                Views(&piece.gradient, 1),
                {.flags = kInPlace});
    }
  });
  b.free(norm);
  b.free(coefficient);
}

Work work_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return Work::kSgd;
    case OptimizerKind::kMomentum:
      return Work::kMomentum;
    case OptimizerKind::kAdamW:
      return Work::kAdamW;
    case OptimizerKind::kAdamW8bit:
      return Work::kAdamW8bit;
  }
  return Work::kAdamW;
}

}  // namespace

void emit_optimizer(ProgramBuilder& b,
                    const PlannerContext& context,
                    const StageBuffers& buffers,
                    DataParallelism& data) {
  const TrainingSpec& training = context.training();
  if (training.scales_loss()) {
    unscale(b, context, buffers, data);
  }
  if (training.clip_norm > 0 && data.optimizes()) {
    clip(b, context, data);
  }
  b.at(Phase::kOptimizer);
  Extras extras;
  extras.guard = training.scales_loss() ? buffers.overflow : kNoBuffer;
  extras.scalar = b.tables().scalar({Scalar::Source::kHost, Scalar::Meaning::kLearningRate, 1, 1});
  const Work work = work_of(training.optimizer);
  std::vector<View> inputs;
  std::vector<View> outputs;
  data.for_each_owned(b, [&](std::span<const OwnedPiece> pieces) {
    for (const OwnedPiece& piece : pieces) {
      inputs.assign({piece.parameter, piece.gradient});
      outputs.assign(1, piece.parameter);
      for (const BufferId state : piece.states) {
        inputs.push_back(b.whole(state));
        outputs.push_back(b.whole(state));
      }
      if (piece.compute.buffer != kNoBuffer) {
        outputs.push_back(piece.compute);
      }
      extras.layout = piece.layout;
      b.compute(work, Shape{{piece.elements}}, inputs, outputs, extras);
    }
  });
  if (training.scales_loss()) {
    const View scaler = b.whole(buffers.scaler);
    const View flag = b.whole(buffers.overflow);
    b.compute(Work::kScalerUpdate, Shape{{1}}, Views(&flag, 1), Views(&scaler, 1));
  }
}

}  // namespace lockstep
