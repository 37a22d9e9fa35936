// ShardedParameters: each unit's parameters are cut over the data axis and gathered when needed.
//
// FSDP2 (torch.distributed.fsdp.fully_shard), its hybrid form (HSDP), and ZeRO stage 3 (arXiv:
// 1910.02054; DeepSpeed stage3.py), which differ in layout, dtypes of what is stored, and whether
// the root unit stays gathered. Order of collectives: FSDP2's (fsdp_param_group.py): forward
// gathers unit by unit, at most one ahead of the unit that is computed; backward gathers the next
// unit before the gradients of this one are computed, and waits for the previous unit's
// reduce-scatter before it packs the next.
#pragma once

#include "core/layout.h"
#include "core/planner/data_parallel.h"
#include "core/planner/optimizer_states.h"

namespace lockstep {

class ShardedParameters : public DataParallelism {
 public:
  explicit ShardedParameters(const DataParallelInputs& inputs);

  void initialize(ProgramBuilder& b) override;
  void create_masters(ProgramBuilder& b) override;
  void allocate_states(ProgramBuilder& b) override;
  void begin_step(ProgramBuilder& b, int variant) override;
  void before_forward(ProgramBuilder& b, int position, const Pass& pass) override;
  void after_forward(ProgramBuilder& b, int position, const Pass& pass) override;
  void before_backward(ProgramBuilder& b, int position, const Pass& pass) override;
  void after_backward(ProgramBuilder& b, int position, const Pass& pass) override;
  View weight(ProgramBuilder& b, std::int32_t parameter) override;
  GradientTarget gradient(ProgramBuilder& b, std::int32_t parameter, const Pass& pass) override;
  void gradient_ready(ProgramBuilder&, std::int32_t, const Pass&) override {}
  bool reduces(const Pass& pass) const override;
  void end_microbatch(ProgramBuilder& b, const Pass& pass) override;
  void finish_gradients(ProgramBuilder& b) override;
  void for_each_owned(ProgramBuilder& b, const PieceVisitor& visit) override;
  void finish_step(ProgramBuilder& b) override;
  View reduced_gradient(ProgramBuilder& b, std::int32_t parameter) override;
  View stored_parameter(ProgramBuilder& b, std::int32_t parameter) override;
  bool uniform_blocks() const override {
    return options().wrap == WrapPolicy::kBlock && context_.uniform_blocks();
  }
  void save(ProgramBuilder& b) override;
  void report_loss(ProgramBuilder& b, const View& loss) override { reduce_loss(b, context_, loss); }
  AxisMask sharded_axes() const override { return shard_axes(); }

 private:
  /// Modules whose parameters are gathered together: a block, or the root (all the rest).
  struct Unit {
    std::vector<std::int32_t> parameters;  ///< stored ones, in registration order
    std::int64_t shard_elements = 0;
    std::uint16_t layout = kNoLayout;
    bool root = false;
    // Buffers while they live.
    BufferId shard = kNoBuffer;      ///< persistent: this rank's part of the parameters
    BufferId regrouped = kNoBuffer;  ///< reshard to a group: 1/k of the gathered parameters
    BufferId gathering = kNoBuffer;  ///< output of the all-gather, until it is copied out
    BufferId gradient = kNoBuffer;   ///< sharded gradient, for one step
    BufferId pending = kNoBuffer;    ///< reduce-scatter input, until the next unit waits for it
    OptimizerStates states;
    bool gathered = false;
  };
  static constexpr int kNoUnit = -1;

  const DataStrategy& options() const { return context_.strategy().data; }
  /// Reshard to groups: shards go over both data axes, the groups of k are the inner one.
  bool regroups() const { return options().reshard == Reshard::kGroup; }
  Axis shard_axis() const { return regroups() ? Axis::kAllData : Axis::kData; }
  AxisMask shard_axes() const {
    return regroups() ? kDataAxes : static_cast<AxisMask>(mask_of(Axis::kData));
  }
  std::int32_t shards() const { return context_.mesh.size(shard_axis()); }
  void regroup(ProgramBuilder& b, Unit& each);
  DType gathered_dtype() const;
  DType reduce_dtype() const;
  bool keeps_until_last() const;
  bool stays_after_forward(const Unit& each) const;
  bool first_position(int position) const;
  void build_units(ProgramBuilder& b);
  void add_to_unit(int position, bool always_own);
  void build_layout(const Unit& each, Layout& layout) const;
  int unit_of(int position) const { return unit_of_position_[static_cast<std::size_t>(position)]; }
  Unit& unit(int index) { return units_[static_cast<std::size_t>(index)]; }
  template <typename Body>
  void for_each_unit(ProgramBuilder& b, Body&& body);
  void start_gather(ProgramBuilder& b, int index);
  void finish_gather(ProgramBuilder& b, int index, bool forward);
  void unshard(ProgramBuilder& b, int index, bool forward);
  void reshard(ProgramBuilder& b, Unit& each);
  void reduce(ProgramBuilder& b, int index);
  void pack_gradients(ProgramBuilder& b, Unit& each, BufferId input, bool predivides);
  void wait_pending(ProgramBuilder& b);
  View shard_view(ProgramBuilder& b, std::int32_t parameter, BufferId buffer) const;
  std::int64_t elements(std::int32_t parameter) const;
  std::int32_t stored(std::int32_t parameter) const;

  const PlannerContext& context_;
  const StageLayout& stage_;
  std::vector<Unit> units_;
  std::vector<int> unit_of_position_;
  std::vector<std::int32_t> unit_of_parameter_;
  std::vector<BufferId> full_;      ///< by parameter: gathered
  std::vector<BufferId> gradient_;  ///< by parameter: full gradient of this backward
  int root_ = kNoUnit;
  int pending_ = kNoUnit;             ///< unit whose reduce-scatter is outstanding
  BufferId added_ = kNoBuffer;        ///< its output, when that was added to an earlier gradient
  BufferId held_gather_ = kNoBuffer;  ///< forward: gather output kept until the next copy-out
  OperationId held_copy_out_ = kNoOperation;  ///< forward: the latest copy-out
  OperationId gather_after_ = kNoOperation;   ///< the copy-out that the next copy-in waits for
  OperationId last_reduction_ = kNoOperation;
};

}  // namespace lockstep
