// StageEmitter: the pipeline stage of one rank as operations: what each action of the schedule
// (forward, backward, its halves, sends and receives) means for the segments that live here.
#pragma once

#include <vector>

#include "core/planner/schedule/schedule.h"
#include "core/planner/segment_emitter.h"
#include "core/planner/stage_layout.h"

namespace lockstep {

/// True when each chunk of `rank` runs its forwards from first to last, and each kind of backward
/// from first to last or from last to first: then middle micro-batches are alike and counting may
/// fold them.
bool is_regular(const Schedule& schedule, std::int32_t rank);

class StageEmitter {
 public:
  StageEmitter(const PlannerContext& context,
               const StageLayout& stage,
               const Schedule& schedule,
               ProgramBuilder& builder,
               DataParallelism& data,
               const StageBuffers& buffers);

  /// All micro-batches of one optimizer step.
  void run_step();
  /// Forward passes only, as the evaluate section has them.
  void run_evaluation();

 private:
  struct Progress {
    std::int32_t forwards = 0;
    std::int32_t inputs = 0;   ///< whole or input-gradient passes done
    std::int32_t weights = 0;  ///< whole or weight-gradient passes done
  };

  void run_microbatches();
  void run_actions(const std::vector<Action>& actions);
  void run_action(const Action& action);
  /// Actions with one key have one effect on counts and memory.
  std::uint64_t fold_key(const Action& action, const Progress& progress) const;
  void forward(int chunk, std::int32_t microbatch, bool evaluate);
  void backward(int chunk, std::int32_t microbatch, BackwardPart part);
  void load_batch(int chunk, std::int32_t microbatch);
  void send(const Action& action);
  void receive(const Action& action);
  ForwardMode forward_mode(int position, bool evaluate) const;
  bool drops(int position) const;
  Pass pass_of(int chunk, std::int32_t microbatch, std::int32_t done) const;
  PieceId piece(PieceKind kind, int position, const Pass& pass, BackwardPart part) const;
  Place origin(int position, const Pass& pass) const;
  std::int64_t boundary_elements() const;
  bool first_stage(int chunk) const { return virtual_stage(chunk) == 0; }
  bool last_stage(int chunk) const { return virtual_stage(chunk) + 1 == schedule_.stages(); }
  std::int32_t virtual_stage(int chunk) const {
    return schedule_.stage_of(stage_.coordinate, chunk);
  }
  SegmentState& state(int position, std::int32_t microbatch) {
    return states_[static_cast<std::size_t>(position) * slots_ + slot(microbatch)];
  }
  std::size_t slot(std::int32_t microbatch) const;
  BufferId& boundary(std::vector<BufferId>& buffers, int chunk, std::int32_t microbatch) {
    return buffers[static_cast<std::size_t>(chunk) * slots_ + slot(microbatch)];
  }

  const PlannerContext& context_;
  const StageLayout& stage_;
  const Schedule& schedule_;
  ProgramBuilder& b_;
  DataParallelism& data_;
  SegmentEmitter segments_;
  bool folds_;         ///< counting: middle micro-batches stand for each other
  std::size_t slots_;  ///< micro-batches with state of their own
  bool uniform_;
  std::vector<SegmentState> states_;
  std::vector<BufferId> activations_in_;  ///< by chunk and micro-batch
  std::vector<BufferId> activations_out_;
  std::vector<BufferId> gradients_in_;
  std::vector<BufferId> gradients_out_;
  std::vector<Progress> progress_;  ///< by chunk
};

}  // namespace lockstep
