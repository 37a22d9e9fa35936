#include "core/planner/schedule/unit_time.h"

#include <algorithm>

#include "core/check.h"
#include "core/planner/schedule/dependency.h"
#include "core/planner/schedule/generators.h"

namespace lockstep {
namespace {

std::int64_t cost_of(ActionKind kind, const UnitCosts& costs) {
  switch (kind) {
    case ActionKind::kForward:
      return costs.forward;
    case ActionKind::kBackward:
      return std::int64_t{costs.backward_input} + costs.backward_weight;
    case ActionKind::kBackwardInput:
      return costs.backward_input;
    case ActionKind::kBackwardWeight:
      return costs.backward_weight;
    default:
      return 0;
  }
}

/// End of the result that travels on: output (forward) or input gradient (B, I), or their messages.
class EndTimes {
 public:
  explicit EndTimes(const Schedule& schedule)
      : microbatches_(static_cast<std::size_t>(schedule.microbatches)),
        ends_(kDirections * static_cast<std::size_t>(schedule.stages()) * microbatches_) {}

  /// Messages are free, so a send or receive ends when the compute action behind it ended.
  std::int64_t of(const Action& need) const {
    switch (need.kind) {
      case ActionKind::kRecvForward:
        return ends_[slot(kForwards, need.stage - 1, need.microbatch)];
      case ActionKind::kRecvBackward:
        return ends_[slot(kBackwards, need.stage + 1, need.microbatch)];
      case ActionKind::kForward:
      case ActionKind::kSendForward:
        return ends_[slot(kForwards, need.stage, need.microbatch)];
      default:
        return ends_[slot(kBackwards, need.stage, need.microbatch)];
    }
  }

  void set(const Action& action, std::int64_t end) {
    if (action.kind == ActionKind::kForward) {
      ends_[slot(kForwards, action.stage, action.microbatch)] = end;
    } else if (gives_input_gradient(action.kind)) {
      ends_[slot(kBackwards, action.stage, action.microbatch)] = end;
    }
  }

 private:
  static constexpr std::size_t kForwards = 0;
  static constexpr std::size_t kBackwards = 1;
  static constexpr std::size_t kDirections = 2;

  std::size_t slot(std::size_t direction, std::int32_t stage, std::int32_t microbatch) const {
    return (static_cast<std::size_t>(stage) * microbatches_ +
            static_cast<std::size_t>(microbatch)) *
               kDirections +
           direction;
  }

  std::size_t microbatches_;
  std::vector<std::int64_t> ends_;
};

/// The stage whose forward or backward makes what is needed.
std::int32_t maker_of(const Action& need) {
  return need.kind == ActionKind::kRecvForward    ? need.stage - 1
         : need.kind == ActionKind::kRecvBackward ? need.stage + 1
                                                  : need.stage;
}

/// zbv with fewer than 2P - 1 micro-batches: the same order with holes (zero_bubble_v.cpp). The
/// peak is at the end of the warm-up, when min(M, 2P - 1 - r) of chunk 0 and min(M, r) of chunk 1
/// are alive and, if there is one, the next chunk-1 forward starts.
std::int64_t zbv_peak(std::int64_t degree, std::int64_t microbatches, std::int64_t rank) {
  return std::min(microbatches, 2 * degree - 1 - rank) + std::min(microbatches, rank) +
         (rank < microbatches ? 1 : 0);
}

}  // namespace

double UnitTime::bubble_fraction() const {
  const double available =
      static_cast<double>(makespan_ticks) * static_cast<double>(peak_live_chunks.size());
  return available > 0 ? 1.0 - static_cast<double>(busy_ticks) / available : 0.0;
}

UnitTime time_schedule(const Schedule& schedule, const UnitCosts& costs) {
  LOCKSTEP_CHECK(costs.forward >= 0 && costs.backward_input >= 0 && costs.backward_weight >= 0 &&
                     costs.message >= 0,
                 "a cost is negative");
  const RunOrder run = find_run_order(schedule);
  LOCKSTEP_CHECK(run.cycle.empty(), "dependency cycle: " + describe_cycle(schedule, run.cycle));
  const DependencyTracker tracker(schedule);
  EndTimes ends(schedule);
  UnitTime result;
  result.ticks_per_unit = schedule.chunks;
  result.peak_live_chunks = peak_live_chunks(schedule);
  std::vector<std::int64_t> rank_free(schedule.ranks.size(), 0);
  for (const std::vector<Action>& order : schedule.ranks) {
    result.times.emplace_back(order.size());
  }
  for (const ActionPlace& place : run.order) {
    const auto rank = static_cast<std::size_t>(place.rank);
    const auto index = static_cast<std::size_t>(place.index);
    const Action& action = schedule.ranks[rank][index];
    std::int64_t start = rank_free[rank];
    if (const std::optional<Action> need = tracker.need_of(action);
        need && is_compute(action.kind)) {
      const bool crosses = schedule.rank_of_stage(maker_of(*need)) != place.rank;
      const std::int64_t message = crosses ? std::int64_t{costs.message} * schedule.chunks : 0;
      start = std::max(start, ends.of(*need) + message);
    }
    const std::int64_t cost = cost_of(action.kind, costs);
    result.times[rank][index] = {start, start + cost};
    result.busy_ticks += cost;
    result.makespan_ticks = std::max(result.makespan_ticks, start + cost);
    rank_free[rank] = start + cost;
    ends.set(action, start + cost);
  }
  return result;
}

std::vector<std::int32_t> peak_live_chunks(const Schedule& schedule) {
  std::vector<std::int32_t> peaks;
  for (const std::vector<Action>& order : schedule.ranks) {
    std::int32_t live = 0;
    std::int32_t peak = 0;
    for (const Action& action : order) {
      if (action.kind == ActionKind::kForward) {
        peak = std::max(peak, ++live);
      } else if (releases_activations(action.kind)) {
        --live;
      }
    }
    peaks.push_back(peak);
  }
  return peaks;
}

std::int64_t peak_live_chunks(const ScheduleRequest& request, std::int32_t rank) {
  const std::int64_t degree = request.pipeline_degree;
  const std::int64_t microbatches = request.microbatches;
  const std::int64_t total = request.chunks * microbatches;
  const std::int64_t other_chunks =
      (request.chunks - 1) *
      (microbatches / interleaved_round_count(request.pipeline_degree, request.microbatches));
  switch (request.kind) {
    case ScheduleKind::kGPipe:
    case ScheduleKind::kLoopedBfs:
      return total;
    case ScheduleKind::k1F1B:
      return std::min(microbatches, degree - rank);
    case ScheduleKind::kInterleaved:
      return std::min(total, other_chunks + 2 * (degree - 1 - rank) + 1);
    case ScheduleKind::kZbH1:
    case ScheduleKind::kInterleavedZb:
      return std::min(total, other_chunks + degree);
    case ScheduleKind::kZbV:
      return zbv_peak(degree, microbatches, rank);
  }
  throw InternalError("schedule", "no closed form for this kind");
}

}  // namespace lockstep
