// 1F1B: after a short warm-up each rank alternates one backward and one forward.
//
//   P = 3, M = 4    rank 0: F0 F1 F2 .  .  .  .  B0 ... F3 B1 B2 B3
//                   rank 1: .  F0 F1 .  .  B0 F2 B1 ...
//                   rank 2: .  .  F0 B0 F1 B1 F2 B2 F3 B3
//
// Warm-up of rank r: min(M, P - r) forwards (PipeDream-Flush: Narayanan et al., arXiv:2006.09503;
// PyTorch's Schedule1F1B). Because the next forward waits for a backward, rank r never holds more
// than min(M, P - r) micro-batches. The makespan is that of GPipe, (M + P - 1)(F + B): 1F1B saves
// memory, not time.
#include <algorithm>

#include "core/planner/schedule/generators.h"

namespace lockstep {

RankOrders one_f_one_b_order(const ScheduleRequest& request) {
  RankOrders orders = empty_orders(request, actions_per_rank(request, false));
  const std::int32_t count = request.microbatches;
  for (std::int32_t rank = 0; rank < request.pipeline_degree; ++rank) {
    std::vector<Action>& order = orders[static_cast<std::size_t>(rank)];
    const std::int32_t warmup = std::min(count, request.pipeline_degree - rank);
    for (std::int32_t forward = 0; forward < warmup; ++forward) {
      order.push_back({ActionKind::kForward, rank, forward});
    }
    for (std::int32_t backward = 0; backward < count; ++backward) {
      order.push_back({ActionKind::kBackward, rank, backward});
      if (warmup + backward < count) {
        order.push_back({ActionKind::kForward, rank, warmup + backward});
      }
    }
  }
  return orders;
}

}  // namespace lockstep
