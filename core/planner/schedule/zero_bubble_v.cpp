// ZBV: two chunks per rank laid out as a V, and the backward split into I and W.
//
// Rank r holds stage r (chunk 0, the way down) and stage 2P - 1 - r (chunk 1, the way up). So rank
// P - 1 turns round without sending, and rank 0 holds both the first stage and the last: it starts
// the backward by itself, and all ranks hold the same number of live chunks.
//
// The order (Qi et al., arXiv:2401.10241 section 6; PyTorch's ScheduleZBVZeroBubble), where F0 is
// "the next forward of chunk 0" and so on:
//   1. warm-up:    2 (P - r) - 1 times F0;  r times (F1 F0);  P - r times (F1 I1 W1)
//   2. steady:     while chunk-1 forwards remain: F0 if any remain, then I0 W0 F1 I1 W1
//   3. cool-down:  r times (I0 I1);  P - r times (I0 W0);  the left-over W1, then the left-over W0
// It is written for at least 2P - 1 micro-batches; with fewer, the same order is made for 2P - 1
// and the actions of micro-batches that do not exist are dropped.
//
// For F = I = W and M >= 2P - 1 the makespan is M (F + B) + (P - 1) F / 2: what remains of the
// bubble is only the way down of the first micro-batch. Live: 2P half-size chunks on every rank.
#include <algorithm>

#include "core/planner/schedule/generators.h"

namespace lockstep {
namespace {

/// The counters of one rank: appends "the next action of this kind on this chunk".
class ZbvRank {
 public:
  ZbvRank(const ScheduleRequest& request, std::int32_t rank, std::vector<Action>& order)
      : degree_(request.pipeline_degree),
        microbatches_(request.microbatches),
        padded_(std::max(2 * request.pipeline_degree - 1, request.microbatches)),
        rank_(rank),
        order_(order) {}

  void warm_up() {
    for (std::int32_t i = 0; i < 2 * (degree_ - rank_) - 1; ++i) {
      next(ActionKind::kForward, 0);
    }
    for (std::int32_t i = 0; i < rank_; ++i) {
      next(ActionKind::kForward, 1);
      next(ActionKind::kForward, 0);
    }
    for (std::int32_t i = 0; i < degree_ - rank_; ++i) {
      next(ActionKind::kForward, 1);
      next_backward(1);
    }
  }

  void steady() {
    while (chunk_[1].forwards < padded_) {
      if (chunk_[0].forwards < padded_) {
        next(ActionKind::kForward, 0);
      }
      next_backward(0);
      next(ActionKind::kForward, 1);
      next_backward(1);
    }
  }

  void cool_down() {
    for (std::int32_t i = 0; i < rank_; ++i) {
      next(ActionKind::kBackwardInput, 0);
      next(ActionKind::kBackwardInput, 1);
    }
    for (std::int32_t i = 0; i < degree_ - rank_; ++i) {
      next_backward(0);
    }
    for (const int chunk : {1, 0}) {
      while (chunk_[chunk].weight_gradients < chunk_[chunk].input_gradients) {
        next(ActionKind::kBackwardWeight, chunk);
      }
    }
  }

 private:
  struct Counters {
    std::int32_t forwards = 0;
    std::int32_t input_gradients = 0;
    std::int32_t weight_gradients = 0;
  };

  void next_backward(int chunk) {
    next(ActionKind::kBackwardInput, chunk);
    next(ActionKind::kBackwardWeight, chunk);
  }

  void next(ActionKind kind, int chunk) {
    Counters& counters = chunk_[chunk];
    std::int32_t& counter = kind == ActionKind::kForward         ? counters.forwards
                            : kind == ActionKind::kBackwardInput ? counters.input_gradients
                                                                 : counters.weight_gradients;
    const std::int32_t microbatch = counter++;
    if (microbatch < microbatches_) {
      order_.push_back({kind, chunk == 0 ? rank_ : 2 * degree_ - 1 - rank_, microbatch});
    }
  }

  std::int32_t degree_;
  std::int32_t microbatches_;
  std::int32_t padded_;  ///< micro-batches for which the order is made
  std::int32_t rank_;
  std::vector<Action>& order_;
  Counters chunk_[2];
};

}  // namespace

RankOrders zero_bubble_v_order(const ScheduleRequest& request) {
  RankOrders orders = empty_orders(request, actions_per_rank(request, true));
  for (std::int32_t rank = 0; rank < request.pipeline_degree; ++rank) {
    ZbvRank zbv(request, rank, orders[static_cast<std::size_t>(rank)]);
    zbv.warm_up();
    zbv.steady();
    zbv.cool_down();
  }
  return orders;
}

}  // namespace lockstep
