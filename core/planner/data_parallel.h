// DataParallelism: who holds which part of parameters, gradients and optimizer state, and what is
// communicated for it. One class per kind, each in its own file under planner/data/; the rest of
// the planner asks this interface and never the kind.
//
// Segments are positions in the stage's list of segments (StageLayout); parameters are ids of the
// model graph. All buffers live in the builder; in counting mode hooks are called for the first,
// one middle and the last layer only when `uniform_layers` says that this is enough.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/planner/context.h"
#include "core/planner/program_builder.h"
#include "core/planner/stage_layout.h"

namespace lockstep {

/// Where a weight gradient is written, and whether it adds to what is there.
struct GradientTarget {
  View view;
  bool accumulate = false;
};

/// A stretch of parameters that this rank updates: one optimizer operation.
struct OwnedPiece {
  View parameter;  ///< what the optimizer updates in place (the master copy if any)
  View gradient;
  View compute;  ///< compute parameter written after the update; buffer may be none
  std::int64_t elements = 0;
  std::uint16_t layout = kNoLayout;  ///< of the piece, for norms (norm_axes) and valid elements
  std::span<const BufferId> states;  ///< optimizer states
};

/// Persistent buffers of a stage that belong to no parameter; kNoBuffer where there is none.
struct StageBuffers {
  BufferId loss = kNoBuffer;         ///< [1], sum over the step's micro-batches
  BufferId scaler = kNoBuffer;       ///< loss scale and growth count
  BufferId overflow = kNoBuffer;     ///< flag: a gradient is inf or NaN
  BufferId token_count = kNoBuffer;  ///< [1], tokens of the step over all ranks
  std::vector<BufferId> running;     ///< batch norm: mean and variance, by segment id
  std::vector<BufferId> counters;    ///< batch norm: int64 batches seen, by segment id
};

class DataParallelism {
 public:
  virtual ~DataParallelism() = default;

  /// Section init: persistent buffers, initial values, replicas made equal.
  virtual void initialize(ProgramBuilder& b) = 0;
  /// Section init, when all parameters have their values: the optimizer's fp32 copies.
  virtual void create_masters(ProgramBuilder& b) = 0;
  /// Optimizer states; called in init (eager) or before the first optimizer step (lazy).
  virtual void allocate_states(ProgramBuilder& b) = 0;

  /// Section step, variant as in Plan::variant_of_iteration.
  virtual void begin_step(ProgramBuilder& b, int variant) = 0;
  /// Before the stage's first forward of a micro-batch.
  virtual void begin_microbatch(ProgramBuilder&, const Pass&) {}
  /// After the stage's backward of a micro-batch.
  virtual void end_microbatch(ProgramBuilder&, const Pass&) {}
  /// Around the forward and the backward of a segment, by its position in the StageLayout.
  virtual void before_forward(ProgramBuilder&, int /*position*/, const Pass&) {}
  virtual void after_forward(ProgramBuilder&, int /*position*/, const Pass&) {}
  virtual void before_backward(ProgramBuilder&, int /*position*/, const Pass&) {}
  virtual void after_backward(ProgramBuilder&, int /*position*/, const Pass&) {}
  /// False when middle blocks do not behave alike, so that counting must visit each.
  virtual bool uniform_blocks() const { return true; }

  /// The full (tensor-parallel local) parameter, valid between before_* and after_*.
  virtual View weight(ProgramBuilder& b, std::int32_t parameter) = 0;
  virtual GradientTarget gradient(ProgramBuilder& b, std::int32_t parameter, const Pass& pass) = 0;
  /// All contributions of this micro-batch are in.
  virtual void gradient_ready(ProgramBuilder& b, std::int32_t parameter, const Pass& pass) = 0;

  /// Reads a micro-batch into `outputs`, each with its own part.
  virtual void load_batch(ProgramBuilder& b, const Shape& shape, Views outputs) {
    b.host(Work::kLoadBatch, shape, {}, outputs);
  }
  /// After the loss of a micro-batch, with the buffer that held the logits.
  virtual void after_loss(ProgramBuilder&, const View& /*logits*/) {}
  /// By how much each rank's loss is divided beyond the micro-batches.
  virtual std::int64_t loss_divisor() const { return 1; }
  /// The step's loss becomes the mean over data-parallel ranks and is read by the host.
  virtual void report_loss(ProgramBuilder& b, const View& loss) = 0;

  /// True when `gradient_ready` in this pass hands the gradient to a reduction, so that it must be
  /// complete over tensor-parallel ranks.
  virtual bool reduces(const Pass& pass) const { return pass.last_backward; }

  /// After the last backward: what is still outstanding; then gradients of owned pieces are final.
  virtual void finish_gradients(ProgramBuilder& b) = 0;
  /// Calls visit(pieces) for every group of pieces that this rank updates (a segment, a bucket).
  using PieceVisitor = std::function<void(std::span<const OwnedPiece>)>;
  virtual void for_each_owned(ProgramBuilder& b, const PieceVisitor& visit) = 0;
  /// The same for the pieces whose gradients this rank looks at for norm and overflow, and clips.
  virtual void for_each_normed(ProgramBuilder& b, const PieceVisitor& visit) {
    for_each_owned(b, visit);
  }
  /// False on a rank that updates nothing and looks at no gradient.
  virtual bool optimizes() const { return true; }
  /// The overflow flag reaches ranks that looked at no gradient.
  virtual void share_overflow(ProgramBuilder&, const View& /*flag*/) {}
  /// After the optimizer: updated parameters travel, gradients are freed.
  virtual void finish_step(ProgramBuilder& b) = 0;

  /// This rank's reduced gradient of a parameter, for the sum over the copies of a tied weight.
  virtual View reduced_gradient(ProgramBuilder& b, std::int32_t parameter) = 0;
  /// This rank's part of a parameter's values, to make the copies of a tied weight equal.
  virtual View stored_parameter(ProgramBuilder& b, std::int32_t parameter) = 0;

  /// Section save: what this rank writes.
  virtual void save(ProgramBuilder& b) = 0;

  /// Axes over which parameters are cut by this kind, for norms and overflow flags.
  virtual AxisMask sharded_axes() const { return 0; }
  /// Number of forms of a step before it repeats: iterations 0, 1, ... run variants 0, 1, ...
  virtual int variants() const { return 1; }
};

/// What a kind needs to know of its stage.
struct DataParallelInputs {
  const PlannerContext& context;
  const StageLayout& stage;
  const StageBuffers& buffers;
  int data_coordinate = 0;  ///< of the class, where programs differ by it; else 0
};
/// What most kinds do to report the loss: a control all-reduce over the data axes.
void reduce_loss(ProgramBuilder& b, const PlannerContext& context, const View& loss);

std::unique_ptr<DataParallelism> make_data_parallelism(const DataParallelInputs& inputs);

}  // namespace lockstep
