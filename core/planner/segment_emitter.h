// SegmentEmitter: forward and backward of one segment (embedding, block, head) for one micro-batch,
// from the model graph's data: allocations, works, tensor-parallel communication, frees.
//
// The rule: forward frees a tensor after its last reader unless backward reads it; backward walks
// the modules in reverse, sums gradients of tensors with several readers, and frees a saved tensor
// after the first module that saved it. Tensor parallelism (Megatron-LM, arXiv:1909.08053; with
// sequence parallelism arXiv:2205.05198) is in linear_emitter.cpp.
#pragma once

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "core/planner/context.h"
#include "core/planner/data_parallel.h"

namespace lockstep {

inline constexpr std::size_t kMaxTensors = 32;

/// The tensors of one segment and micro-batch, by template index of their storage.
struct SegmentState {
  std::array<BufferId, kMaxTensors> tensors{};
  /// Weight gradients put off to a later backward-weight pass.
  struct Deferred {
    std::int32_t module = 0;  ///< index into the template
    BufferId dy = kNoBuffer;
    BufferId x = kNoBuffer;
  };
  std::vector<Deferred> deferred;
  SegmentState() { tensors.fill(kNoBuffer); }
};

enum class ForwardMode : std::uint8_t {
  kTrain,      ///< keep what backward reads
  kDrop,       ///< keep only the input; backward will recompute
  kRecompute,  ///< the second forward of a dropped segment
  kEvaluate,   ///< keep nothing
};
enum class BackwardPart : std::uint8_t { kWhole, kInput, kWeight };

class SegmentEmitter {
 public:
  SegmentEmitter(const PlannerContext& context,
                 ProgramBuilder& builder,
                 DataParallelism& data,
                 const StageBuffers& buffers);

  /// Reads state.tensors[input], leaves state.tensors[output]; the caller owns the output.
  void forward(std::int32_t segment, SegmentState& state, const Pass& pass, ForwardMode mode);
  /// Consumes `dy` (gradient of the output; none for the segment with the loss); returns the
  /// input's gradient (none for tokens). kWeight: runs what kInput put off, `dy` is none.
  BufferId backward(
      std::int32_t segment, SegmentState& state, BufferId dy, const Pass& pass, BackwardPart part);

 private:
  struct Gradients {
    std::array<BufferId, kMaxTensors> of{};  ///< by tensor (not storage)
    Gradients() { of.fill(kNoBuffer); }
  };

  // One module.
  void forward_module(int index, SegmentState& state);
  void backward_module(int index, SegmentState& state, Gradients& gradients);
  void allocate_outputs(const ModuleDef& module, SegmentState& state);
  void release_after_forward(int index, SegmentState& state);
  void release_after_backward(int index, SegmentState& state);

  // linear_emitter.cpp: products and what tensor parallelism adds to them.
  void linear_forward(const ModuleDef& module, SegmentState& state);
  void linear_backward(int index, SegmentState& state, Gradients& gradients);
  void linear_weight_gradient(const ModuleDef& module, const View& dy, const View& x);
  void bias_gradient(const ModuleDef& module, const View& dy);
  void embedding_forward(const ModuleDef& module, SegmentState& state);
  void embedding_backward(const ModuleDef& module, SegmentState& state, Gradients& gradients);
  Shape linear_shape(const ModuleDef& module) const;
  std::int64_t expected_input(const ModuleDef& module) const;
  BufferId gather_tokens(BufferId shard);
  void reduce_tensor(BufferId buffer);
  void scatter_tokens(BufferId whole, BufferId shard);
  std::uint8_t tensor_communicator();

  // loss_emitter.cpp
  void loss_forward(const ModuleDef& module, SegmentState& state);
  void loss_backward(const ModuleDef& module, SegmentState& state, Gradients& gradients);

  // batch_norm_emitter.cpp
  void batch_norm_forward(const ModuleDef& module, SegmentState& state);
  void batch_norm_backward(const ModuleDef& module, SegmentState& state, Gradients& gradients);

  void attention_forward(const ModuleDef& module, SegmentState& state);
  void attention_backward(const ModuleDef& module, SegmentState& state, Gradients& gradients);
  void norm_forward(const ModuleDef& module, SegmentState& state);
  void norm_backward(const ModuleDef& module, SegmentState& state, Gradients& gradients);
  void experts_forward(const ModuleDef& module, SegmentState& state);
  void experts_backward(const ModuleDef& module, SegmentState& state, Gradients& gradients);
  void simple_forward(const ModuleDef& module, SegmentState& state);
  void simple_backward(const ModuleDef& module, SegmentState& state, Gradients& gradients);
  void residual_backward(const ModuleDef& module, Gradients& gradients);

  // Tensors, parameters, gradients.
  const TensorDef& tensor(std::int8_t index) const {
    return form_->tensors[static_cast<std::size_t>(index)];
  }
  BufferId& storage(SegmentState& state, std::int8_t index) const {
    return state.tensors[static_cast<std::size_t>(tensor(index).storage)];
  }
  View view(SegmentState& state, std::int8_t index) const {
    return b_.whole(storage(state, index));
  }
  BufferId allocate(const TensorDef& definition, Category category);
  BufferId allocate_gradient(std::int8_t index);
  void add_gradient(Gradients& gradients, std::int8_t index, BufferId gradient);
  BufferId take_gradient(Gradients& gradients, std::int8_t index);
  std::int32_t parameter_id(std::int16_t index) const { return segment_->first_parameter + index; }
  View weight(std::int16_t index) { return data_.weight(b_, parameter_id(index)); }
  /// Targets of a module's parameter gradients, in order; all agree on accumulation.
  bool gradient_targets(std::span<const std::int16_t> parameters, std::vector<View>& targets);
  void gradients_ready(std::span<const std::int16_t> parameters);
  void reduce_partial_gradients();
  Shape head_shape() const;
  Shape rows_shape(const TensorDef& definition) const;
  std::uint16_t accumulate_flag(bool accumulate) const {
    return accumulate ? static_cast<std::uint16_t>(kAccumulate) : std::uint16_t{0};
  }

  const PlannerContext& context_;
  ProgramBuilder& b_;
  DataParallelism& data_;
  const StageBuffers& buffers_;

  // Of the call in progress.
  const Segment* segment_ = nullptr;
  const SegmentTemplate* form_ = nullptr;
  Pass pass_;
  ForwardMode mode_ = ForwardMode::kTrain;
  BackwardPart part_ = BackwardPart::kWhole;
  std::vector<std::int16_t> partial_;  ///< parameters whose gradients await the sum over tp
  std::vector<View> targets_;
  std::vector<View> operands_;
};

}  // namespace lockstep
