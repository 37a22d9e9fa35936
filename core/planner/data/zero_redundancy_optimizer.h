// OwnerOptimizer: DDP with torch.distributed.optim.ZeroRedundancyOptimizer. Gradients are DDP's,
// whole on every rank; each parameter has one owner that keeps its optimizer state and broadcasts
// the updated value, rank by rank. Programs differ by owner, so data-parallel ranks do not fold.
#pragma once

#include "core/planner/data/ddp.h"

namespace lockstep {

class OwnerOptimizer : public Ddp {
 public:
  explicit OwnerOptimizer(const DataParallelInputs& inputs);
  bool uniform_blocks() const override { return false; }
  void for_each_normed(ProgramBuilder& b, const PieceVisitor& visit) override;
  void finish_step(ProgramBuilder& b) override;

 protected:
  bool owns(std::int32_t parameter) const override {
    return visit_all_ || owner_[index(parameter)] == coordinate_;
  }

 private:
  int coordinate_;
  bool visit_all_ = false;
  std::vector<std::int32_t> owner_;  ///< by parameter
  std::vector<std::int32_t> dealt_;  ///< parameters in the order in which they found owners
};

}  // namespace lockstep
