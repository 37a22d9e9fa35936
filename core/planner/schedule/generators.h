// The generators behind make_schedule, one per file, and the two placements of stages on ranks.
//
// Internal to this folder. A generator gets a request without problems and returns the compute
// actions of each rank; stage numbers follow the placement that make_schedule chose for the kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/planner/schedule/schedule.h"

namespace lockstep {

using RankOrders = std::vector<std::vector<Action>>;

RankOrders gpipe_order(const ScheduleRequest& request);
RankOrders one_f_one_b_order(const ScheduleRequest& request);
RankOrders interleaved_order(const ScheduleRequest& request);
RankOrders looped_bfs_order(const ScheduleRequest& request);
/// For V = 1 this is ZB-H1, for more chunks PyTorch's InterleavedZeroBubble.
RankOrders zero_bubble_h1_order(const ScheduleRequest& request);
RankOrders zero_bubble_v_order(const ScheduleRequest& request);

/// An order of `request.pipeline_degree` rows, each with room for `actions_per_rank` actions.
inline RankOrders empty_orders(const ScheduleRequest& request, std::int64_t actions_per_rank) {
  RankOrders orders(static_cast<std::size_t>(request.pipeline_degree));
  for (std::vector<Action>& order : orders) {
    order.reserve(static_cast<std::size_t>(actions_per_rank));
  }
  return orders;
}

/// Compute actions of one rank: forwards and whole backwards, or forwards and split backwards.
inline std::int64_t actions_per_rank(const ScheduleRequest& request, bool split_backward) {
  return std::int64_t{request.chunks} * request.microbatches * (split_backward ? 3 : 2);
}

/// The rounds in which interleaved schedules walk through chunks and micro-batches (Megatron-LM,
/// arXiv:2104.04473 section 2.2; PyTorch relaxes "M divisible by P" to equal rounds).
///
/// A round takes `microbatches_per_round` micro-batches through chunk 0, then the same ones through
/// chunk 1, and so on; the backward walks the chunks from the last to the first. So the k-th
/// forward or backward of a rank is known without looking at the others:
///   round = k / (mpr V), chunk = (k / mpr) mod V, micro-batch = round * mpr + k mod mpr.
struct InterleavedRounds {
  explicit InterleavedRounds(const ScheduleRequest& request);

  Action forward(std::int32_t rank, std::int32_t k) const;
  /// The k-th backward of the given backward kind.
  Action backward(ActionKind kind, std::int32_t rank, std::int32_t k) const;

  std::int32_t pipeline_degree;
  std::int32_t chunks;
  std::int32_t microbatches_per_round;  ///< mpr = M / max(1, M / P)
  std::int32_t total;                   ///< forwards of one rank, V * M
};

/// max(1, M / P): the number of rounds that M has to be divisible by.
constexpr std::int32_t interleaved_round_count(std::int32_t pipeline_degree,
                                               std::int32_t microbatches) {
  const std::int32_t rounds = microbatches / pipeline_degree;
  return rounds > 0 ? rounds : 1;
}

}  // namespace lockstep
