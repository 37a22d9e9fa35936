// ZB-H1: the backward is split in two, and the half that nobody waits for fills the bubble.
//
// I (input gradient) is all that the stage before needs; W (weight gradient) may come later. Rank r
// runs its warm-up, then forward, I in turn, and starts its W only after r of its I: W number j
// follows I number j + r, the last r W close the step.
//
//   P = 3, M = 4    rank 0: F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3     (idle cells left out)
//                   rank 1: F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
//                   rank 2: F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
//
// Warm-up of rank r: (V - 1) mpr + (P - 1 - r) forwards, at most M V, each chunk order as in the
// interleaved schedule. With V = 1 it is ZB-H1 of Qi et al., arXiv:2401.10241 (PyTorch calls it
// ZB1P), with more chunks PyTorch's ScheduleInterleavedZeroBubble.
//
// For M >= P and F = I = W the makespan is M (F + B) + (P - 1) F / V, B = I + W: a third of 1F1B's
// bubble. The delayed W keep their activations, so that every rank, not only the first, holds
// (V - 1) mpr + P chunks: the maximum of 1F1B, no longer its decrease from rank to rank.
#include <algorithm>

#include "core/planner/schedule/generators.h"

namespace lockstep {

RankOrders zero_bubble_h1_order(const ScheduleRequest& request) {
  const InterleavedRounds rounds(request);
  RankOrders orders = empty_orders(request, actions_per_rank(request, true));
  for (std::int32_t rank = 0; rank < request.pipeline_degree; ++rank) {
    std::vector<Action>& order = orders[static_cast<std::size_t>(rank)];
    const std::int32_t warmup = std::min(
        rounds.total,
        (request.chunks - 1) * rounds.microbatches_per_round + request.pipeline_degree - 1 - rank);
    for (std::int32_t k = 0; k < warmup; ++k) {
      order.push_back(rounds.forward(rank, k));
    }
    for (std::int32_t k = 0; k < rounds.total; ++k) {
      if (warmup + k < rounds.total) {
        order.push_back(rounds.forward(rank, warmup + k));
      }
      order.push_back(rounds.backward(ActionKind::kBackwardInput, rank, k));
      if (k >= rank) {
        order.push_back(rounds.backward(ActionKind::kBackwardWeight, rank, k - rank));
      }
    }
    for (std::int32_t k = std::max(0, rounds.total - rank); k < rounds.total; ++k) {
      order.push_back(rounds.backward(ActionKind::kBackwardWeight, rank, k));
    }
  }
  return orders;
}

}  // namespace lockstep
