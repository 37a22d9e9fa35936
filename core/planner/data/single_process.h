// SingleProcess: torch.nn.DataParallel: one process, one thread per device, device 0 in charge.
//
// Every forward scatters the batch, broadcasts all parameters and buffers from device 0 in flat
// messages of 10 MiB (torch/nn/parallel/comm.py) and gathers the outputs; every backward reduces
// the gradients to device 0 as a SUM; only device 0 has an optimizer. The model returns its loss
// and its logits, as Hugging Face models do, so device 0 gathers both and the mean of the losses is
// what is differentiated: each device's part counts 1/N.
#pragma once

#include "core/planner/data/replicated.h"

namespace lockstep {

class SingleProcess : public ReplicatedParameters {
 public:
  explicit SingleProcess(const DataParallelInputs& inputs);

  void initialize(ProgramBuilder& b) override;
  void create_masters(ProgramBuilder& b) override;
  void allocate_states(ProgramBuilder& b) override;
  void begin_microbatch(ProgramBuilder& b, const Pass& pass) override;
  void end_microbatch(ProgramBuilder& b, const Pass& pass) override;
  void load_batch(ProgramBuilder& b, const Shape& shape, Views outputs) override;
  void after_loss(ProgramBuilder& b, const View& logits) override;
  std::int64_t loss_divisor() const override { return context_.data_degree(); }
  void report_loss(ProgramBuilder& b, const View& loss) override;
  bool reduces(const Pass&) const override { return true; }
  bool uniform_blocks() const override { return false; }
  bool optimizes() const override { return in_charge(); }
  void share_overflow(ProgramBuilder& b, const View& flag) override;
  void for_each_owned(ProgramBuilder& b, const PieceVisitor& visit) override;
  void finish_step(ProgramBuilder& b) override;
  void save(ProgramBuilder& b) override;

 private:
  bool in_charge() const { return coordinate_ == 0; }
  std::uint8_t group(ProgramBuilder& b) const { return b.tables().communicator(kDataAxes); }
  template <typename Message>
  void for_each_message(std::int64_t element_bytes, Message&& message) const;
  void replicate(ProgramBuilder& b);
  void broadcast_statistics(ProgramBuilder& b);
  void free_replica(ProgramBuilder& b);

  int coordinate_;
  BufferId outputs_ = kNoBuffer;  ///< device 0: gathered logits
  std::vector<std::int32_t> ids_;
  std::vector<BufferId> total_;  ///< device 0: sum of gradients over devices and micro-batches
};

}  // namespace lockstep
