// DDP: PyTorch's DistributedDataParallel, bucket by bucket
// (torch/csrc/distributed/c10d/reducer.cpp).
//
// Gradients are copied into buckets as they become ready, divided by N in the same pass; a full
// bucket is all-reduced in strict bucket order while backward goes on; after backward all are
// waited for in order and copied back. The first synchronised pass has one bucket; buckets are
// rebuilt from the recorded order before a later one (core/planner/data/buckets.h knows when).
// `ideal` has even buckets from the start and none of the initial checks.
#pragma once

#include <span>
#include <vector>

#include "core/planner/data/buckets.h"
#include "core/planner/data/replicated.h"

namespace lockstep {

class Ddp : public ReplicatedParameters {
 public:
  explicit Ddp(const DataParallelInputs& inputs);

  void initialize(ProgramBuilder& b) override;
  void begin_step(ProgramBuilder& b, int variant) override;
  void begin_microbatch(ProgramBuilder& b, const Pass& pass) override;
  bool reduces(const Pass& pass) const override;
  GradientTarget gradient(ProgramBuilder& b, std::int32_t parameter, const Pass& pass) override;
  void gradient_ready(ProgramBuilder& b, std::int32_t parameter, const Pass& pass) override;
  void end_microbatch(ProgramBuilder& b, const Pass& pass) override;
  void finish_gradients(ProgramBuilder& b) override;
  int variants() const override;

 protected:
  View final_gradient(ProgramBuilder& b, std::int32_t parameter) override;

  std::vector<std::int32_t> ids_;  ///< parameters of this stage in registration order

 private:
  const DataStrategy& options() const { return context_.strategy().data; }
  std::int64_t pass_number(std::int32_t microbatch) const;
  void synchronize_model(ProgramBuilder& b);
  void broadcast_coalesced(ProgramBuilder& b, std::span<const std::vector<View>> messages);
  void broadcast_buffers(ProgramBuilder& b);
  void assign_buckets(DdpBucketing bucketing);
  void allocate_buckets(ProgramBuilder& b);
  void rebuild(ProgramBuilder& b);
  void start_pass();
  void launch_ready(ProgramBuilder& b);
  void launch(ProgramBuilder& b, int k);
  void reduce_used_map(ProgramBuilder& b);
  void finish_pass(ProgramBuilder& b);
  static void unpack_bucket(ProgramBuilder& b, const View& bucket, const std::vector<View>& parts);
  std::int64_t divisor() const;
  std::size_t position(std::int32_t parameter) const {
    return static_cast<std::size_t>(position_of_[index(parameter)]);
  }
  /// Where a parameter's gradient lies in its bucket.
  View slot(ProgramBuilder& b, std::int32_t parameter) const;
  /// True when gradients of this step's earlier micro-batches are views of buckets.
  bool in_buckets() const { return options().gradient_as_bucket_view && passes_ > 0; }

  DdpBucketOptions bucket_options_;
  std::vector<std::int32_t> position_of_;  ///< by parameter: index into ids_
  BucketList buckets_;
  std::vector<std::int32_t> bucket_of_;  ///< by index into ids_
  std::vector<std::int64_t> offset_of_;  ///< by index into ids_: elements into its bucket
  std::vector<BufferId> bucket_;
  std::vector<std::int32_t> pending_;
  int next_ = 0;
  int variant_ = 0;
  std::int32_t passes_ = 0;  ///< synchronised passes that this step has finished
  bool open_pass_ = false;   ///< a synchronised pass has launched or may launch reductions
};

}  // namespace lockstep
