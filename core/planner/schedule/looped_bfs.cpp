// Looped BFS: all micro-batches through the rank's first chunk, then all through the second, ...
//
// Stage = chunk * P + rank. Breadth first (Lamy-Poirier, arXiv:2211.05953): the opposite of the
// interleaved schedule, which takes a micro-batch deeper before it takes the next. The backward
// mirrors the forward exactly: chunks from the last to the first and, as in PyTorch's
// ScheduleLoopedBFS, micro-batches from the last to the first.
//
// For M >= P the makespan is M (F + B) + (P - 1)(F + B) / V, as interleaved, but all M V chunks are
// alive at the turn. What it buys: each chunk's weights are used M times in a row, so a sharded
// chunk is gathered once per pass and its gradient is complete early.
#include "core/planner/schedule/generators.h"

namespace lockstep {

RankOrders looped_bfs_order(const ScheduleRequest& request) {
  RankOrders orders = empty_orders(request, actions_per_rank(request, false));
  for (std::int32_t rank = 0; rank < request.pipeline_degree; ++rank) {
    std::vector<Action>& order = orders[static_cast<std::size_t>(rank)];
    for (std::int32_t chunk = 0; chunk < request.chunks; ++chunk) {
      const std::int32_t stage = chunk * request.pipeline_degree + rank;
      for (std::int32_t microbatch = 0; microbatch < request.microbatches; ++microbatch) {
        order.push_back({ActionKind::kForward, stage, microbatch});
      }
    }
    const std::size_t forwards = order.size();
    for (std::size_t k = forwards; k-- > 0;) {
      order.push_back({ActionKind::kBackward, order[k].stage, order[k].microbatch});
    }
  }
  return orders;
}

}  // namespace lockstep
