#include "core/planner/schedule/schedule.h"

#include "core/check.h"
#include "core/error.h"
#include "core/planner/schedule/generators.h"

namespace lockstep {
namespace {

/// Loop: stage = chunk * P + rank, so every step to the next stage changes the rank.
/// V (zbv): rank r holds stages r and 2P - 1 - r, so the step between P - 1 and P stays on a rank.
void place_stages(const ScheduleRequest& request, Schedule& schedule) {
  const std::int32_t degree = request.pipeline_degree;
  for (std::int32_t stage = 0; stage < degree * request.chunks; ++stage) {
    const bool on_way_up = request.kind == ScheduleKind::kZbV && stage >= degree;
    schedule.stage_to_rank.push_back(on_way_up ? 2 * degree - 1 - stage : stage % degree);
    schedule.stage_to_chunk.push_back(stage / degree);
  }
}

RankOrders generate(const ScheduleRequest& request) {
  switch (request.kind) {
    case ScheduleKind::kGPipe:
      return gpipe_order(request);
    case ScheduleKind::k1F1B:
      return one_f_one_b_order(request);
    case ScheduleKind::kInterleaved:
      return interleaved_order(request);
    case ScheduleKind::kLoopedBfs:
      return looped_bfs_order(request);
    case ScheduleKind::kZbH1:
    case ScheduleKind::kInterleavedZb:
      return zero_bubble_h1_order(request);
    case ScheduleKind::kZbV:
      return zero_bubble_v_order(request);
  }
  throw InternalError("schedule", "no generator for this kind");
}

}  // namespace

std::int32_t Schedule::stage_of(std::int32_t rank, std::int32_t chunk) const {
  for (std::int32_t stage = 0; stage < stages(); ++stage) {
    if (rank_of_stage(stage) == rank && chunk_of_stage(stage) == chunk) {
      return stage;
    }
  }
  throw InternalError(
      "schedule", "no stage on rank " + std::to_string(rank) + ", chunk " + std::to_string(chunk));
}

bool Schedule::crosses_ranks_after(std::int32_t stage) const {
  return stage + 1 < stages() && rank_of_stage(stage) != rank_of_stage(stage + 1);
}

Schedule make_schedule(const ScheduleRequest& request) {
  std::string message;
  for (const std::string& problem : problems(request)) {
    message += message.empty() ? problem : "; " + problem;
  }
  if (!message.empty()) {
    throw UsageError("schedule", message);
  }
  Schedule schedule;
  schedule.pipeline_degree = request.pipeline_degree;
  schedule.chunks = request.chunks;
  schedule.microbatches = request.microbatches;
  place_stages(request, schedule);
  schedule.ranks = generate(request);
  return schedule;
}

Schedule compute_only(const Schedule& schedule) {
  Schedule result = schedule;
  for (std::vector<Action>& order : result.ranks) {
    std::erase_if(order, [](const Action& action) { return !is_compute(action.kind); });
  }
  return result;
}

Schedule merge_backward(const Schedule& schedule) {
  Schedule result = schedule;
  for (std::vector<Action>& order : result.ranks) {
    std::size_t kept = 0;
    for (const Action action : order) {
      const Action input_half{ActionKind::kBackwardInput, action.stage, action.microbatch};
      if (action.kind == ActionKind::kBackwardWeight && kept > 0 && order[kept - 1] == input_half) {
        order[kept - 1].kind = ActionKind::kBackward;
      } else {
        order[kept++] = action;
      }
    }
    order.resize(kept);
  }
  return result;
}

}  // namespace lockstep
