// GPipe: all forwards, then all backwards.
//
//   P = 3, M = 4    rank 0: F0 F1 F2 F3 .  .  .  .  B0 ...
//                   rank 1: .  F0 F1 F2 F3 .  .  B0 B1 ...
//                   rank 2: .  .  F0 F1 F2 F3 B0 B1 B2 B3
//
// The backwards run in FIFO order 0 .. M-1: PyTorch's ScheduleGPipe does so, although the paper
// (Huang et al., arXiv:1811.06965, figure 2c) draws them reversed. The makespan is the same,
// (M + P - 1)(F + B), and so is the memory: all M micro-batches are alive on every rank.
#include "core/planner/schedule/generators.h"

namespace lockstep {

RankOrders gpipe_order(const ScheduleRequest& request) {
  RankOrders orders = empty_orders(request, actions_per_rank(request, false));
  for (std::int32_t rank = 0; rank < request.pipeline_degree; ++rank) {
    std::vector<Action>& order = orders[static_cast<std::size_t>(rank)];
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      for (std::int32_t microbatch = 0; microbatch < request.microbatches; ++microbatch) {
        order.push_back({kind, rank, microbatch});
      }
    }
  }
  return orders;
}

}  // namespace lockstep
