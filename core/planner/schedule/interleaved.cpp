// Interleaved 1F1B: each rank holds V chunks of the model, so the pipeline fills V times faster.
//
// Stage = chunk * P + rank. Micro-batches go through the chunks in rounds (InterleavedRounds).
// Warm-up of rank r: (V - 1) mpr + 2 (P - 1 - r) forwards, at most M V, where mpr = M / max(1, M/P)
// is the number of micro-batches of a round; then one forward and one backward in turn, then the
// remaining backwards. (Narayanan et al., arXiv:2104.04473 section 2.2; PyTorch's
// ScheduleInterleaved1F1B, which asks for M divisible by the number of rounds, not by P.)
//
// For M >= P the makespan is M (F + B) + (P - 1)(F + B) / V: the bubble of 1F1B divided by V. The
// price is V times the messages and MORE live activations than 1F1B, not fewer: rank 0 holds
// (V - 1) mpr + 2 (P - 1) + 1 chunks, that is P + (P - 1) / V micro-batches when mpr = P.
#include <algorithm>

#include "core/planner/schedule/generators.h"

namespace lockstep {

InterleavedRounds::InterleavedRounds(const ScheduleRequest& request)
    : pipeline_degree(request.pipeline_degree),
      chunks(request.chunks),
      microbatches_per_round(request.microbatches / interleaved_round_count(request.pipeline_degree,
                                                                            request.microbatches)),
      total(request.chunks * request.microbatches) {}

Action InterleavedRounds::forward(std::int32_t rank, std::int32_t k) const {
  const std::int32_t chunk = (k / microbatches_per_round) % chunks;
  const std::int32_t round = k / (microbatches_per_round * chunks);
  const std::int32_t microbatch = round * microbatches_per_round + k % microbatches_per_round;
  return {ActionKind::kForward, chunk * pipeline_degree + rank, microbatch};
}

Action InterleavedRounds::backward(ActionKind kind, std::int32_t rank, std::int32_t k) const {
  const Action mirrored = forward(rank, k);
  const std::int32_t chunk = chunks - 1 - mirrored.stage / pipeline_degree;
  return {kind, chunk * pipeline_degree + rank, mirrored.microbatch};
}

RankOrders interleaved_order(const ScheduleRequest& request) {
  const InterleavedRounds rounds(request);
  RankOrders orders = empty_orders(request, actions_per_rank(request, false));
  for (std::int32_t rank = 0; rank < request.pipeline_degree; ++rank) {
    std::vector<Action>& order = orders[static_cast<std::size_t>(rank)];
    const std::int32_t warmup = std::min(rounds.total,
                                         (request.chunks - 1) * rounds.microbatches_per_round +
                                             2 * (request.pipeline_degree - 1 - rank));
    for (std::int32_t k = 0; k < warmup; ++k) {
      order.push_back(rounds.forward(rank, k));
    }
    for (std::int32_t k = 0; k < rounds.total; ++k) {
      if (warmup + k < rounds.total) {
        order.push_back(rounds.forward(rank, warmup + k));
      }
      order.push_back(rounds.backward(ActionKind::kBackward, rank, k));
    }
  }
  return orders;
}

}  // namespace lockstep
