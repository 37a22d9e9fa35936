// PartitionedOptimizer: ZeRO stages 1 and 2: whole parameters on every rank, optimizer states (and
// from stage 2 on reduced gradients) cut over the data axis (arXiv:1910.02054).
//
// Parameters lie in flat buckets; every rank owns one slice of each bucket, updates it, and the
// updated slices are gathered in place. Flavours differ in bucket rule, alignment, gradient dtype,
// which collective reduces, and when:
//   paper      reduce-scatter; stage 1 after the last micro-batch, stage 2 after each
//   megatron   the same as stage 1 with fp32 gradients (distributed optimizer)
//   deepspeed  all-reduce of whole buckets, divided beforehand; each rank keeps its slices
// Slices are cut per bucket, so that all ranks run one program; DeepSpeed cuts the concatenation of
// all buckets instead, which gives the same bytes to hold and to send.
#pragma once

#include "core/layout.h"
#include "core/planner/data/buckets.h"
#include "core/planner/data_parallel.h"
#include "core/planner/optimizer_states.h"

namespace lockstep {

class PartitionedOptimizer : public DataParallelism {
 public:
  explicit PartitionedOptimizer(const DataParallelInputs& inputs);

  void initialize(ProgramBuilder& b) override;
  void create_masters(ProgramBuilder& b) override;
  void allocate_states(ProgramBuilder& b) override;
  void begin_step(ProgramBuilder& b, int variant) override;
  bool uniform_blocks() const override { return stage1(); }
  bool reduces(const Pass& pass) const override { return !stage1() || pass.last_backward; }
  View weight(ProgramBuilder& b, std::int32_t parameter) override;
  GradientTarget gradient(ProgramBuilder& b, std::int32_t parameter, const Pass& pass) override;
  void gradient_ready(ProgramBuilder& b, std::int32_t parameter, const Pass& pass) override;
  void end_microbatch(ProgramBuilder& b, const Pass& pass) override;
  void finish_gradients(ProgramBuilder& b) override;
  void for_each_owned(ProgramBuilder& b, const PieceVisitor& visit) override;
  void finish_step(ProgramBuilder& b) override;
  View reduced_gradient(ProgramBuilder& b, std::int32_t parameter) override;
  View stored_parameter(ProgramBuilder& b, std::int32_t parameter) override;
  void save(ProgramBuilder& b) override;
  void report_loss(ProgramBuilder& b, const View& loss) override { reduce_loss(b, context_, loss); }
  AxisMask sharded_axes() const override { return mask_of(Axis::kData); }

 private:
  struct Shard {
    std::vector<std::int32_t> parameters;
    std::uint16_t layout = kNoLayout;
    std::int64_t slice_elements = 0;
    BufferId values = kNoBuffer;     ///< persistent: whole parameters, flat
    BufferId gradients = kNoBuffer;  ///< stage 1, persistent: whole gradients, flat
    BufferId reduced = kNoBuffer;    ///< stage 2: this rank's gradient slice, for one step
    BufferId message = kNoBuffer;    ///< stage 2: bucket in flight
    OptimizerStates states;
    int pending = 0;
  };

  const DataStrategy& options() const { return context_.strategy().data; }
  bool stage1() const { return options().kind == DataKind::kZero1; }
  bool deepspeed() const { return options().flavour == ZeroFlavour::kDeepSpeed; }
  std::int32_t shards() const { return context_.mesh.size(Axis::kData); }
  std::int32_t stored(std::int32_t parameter) const {
    return stage_.has_embedding && context_.graph->parameter(parameter).tied ? 0 : parameter;
  }
  std::int64_t elements(std::int32_t parameter) const {
    return context_.local_elements(context_.graph->parameter(parameter));
  }
  Shard& shard(int bucket) { return buckets_[static_cast<std::size_t>(bucket)]; }
  int bucket_of(std::int32_t parameter) const {
    return bucket_of_[static_cast<std::size_t>(parameter)];
  }
  void assign_buckets(ProgramBuilder& b);
  void build_layout(const Shard& each, Layout& layout) const;
  std::uint16_t pre_division(ProgramBuilder& b) const;
  Reduction reduction() const;
  void start_pass();
  void reduce_in_place(ProgramBuilder& b, Shard& each);
  void reduce_message(ProgramBuilder& b, int bucket);
  void fill_message(ProgramBuilder& b, Shard& each);
  void free_message(ProgramBuilder& b);
  View slice(BufferId buffer, const Shard& each) const {
    return ProgramBuilder::slice(buffer, Axis::kData, each.slice_elements);
  }

  const PlannerContext& context_;
  const StageLayout& stage_;
  std::vector<Shard> buckets_;
  std::vector<int> bucket_of_;         ///< by parameter
  std::vector<BufferId> weight_;       ///< by parameter: a view of its bucket's values
  std::vector<BufferId> gradient_;     ///< by parameter: stage 1 a view of the bucket's gradients
  std::vector<std::uint8_t> written_;  ///< by parameter: gradient has been written in this step
  OperationId reduction_ = kNoOperation;  ///< stage 2: of the message that was last under way
  int in_flight_ = -1;                    ///< stage 2: bucket whose message is not freed yet
  BufferId added_ = kNoBuffer;            ///< its slice, when that was added to an earlier gradient
  int next_ = 0;
};

}  // namespace lockstep
