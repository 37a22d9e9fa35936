#include "core/planner/schedule/communication.h"

#include <optional>

#include "core/check.h"
#include "core/planner/schedule/dependency.h"

namespace lockstep {
namespace {

/// The send that has to follow a compute action, if its result leaves the rank.
std::optional<Action> send_after(const Schedule& schedule, const Action& action) {
  if (action.kind == ActionKind::kForward && schedule.crosses_ranks_after(action.stage)) {
    return Action{ActionKind::kSendForward, action.stage, action.microbatch};
  }
  if (gives_input_gradient(action.kind) && action.stage > 0 &&
      schedule.crosses_ranks_after(action.stage - 1)) {
    return Action{ActionKind::kSendBackward, action.stage, action.microbatch};
  }
  return std::nullopt;
}

Action receive_of(const Action& send) {
  if (send.kind == ActionKind::kSendForward) {
    return {ActionKind::kRecvForward, send.stage + 1, send.microbatch};
  }
  return {ActionKind::kRecvBackward, send.stage - 1, send.microbatch};
}

/// The receive that has to precede a compute action, if its input comes from another rank.
std::optional<Action> receive_before(const Schedule& schedule, const Action& action) {
  if (action.kind == ActionKind::kForward && action.stage > 0 &&
      schedule.crosses_ranks_after(action.stage - 1)) {
    return Action{ActionKind::kRecvForward, action.stage, action.microbatch};
  }
  if (gives_input_gradient(action.kind) && schedule.crosses_ranks_after(action.stage)) {
    return Action{ActionKind::kRecvBackward, action.stage, action.microbatch};
  }
  return std::nullopt;
}

void clear_rows(Schedule& schedule) {
  for (std::vector<Action>& order : schedule.ranks) {
    const std::size_t before = order.size();
    order.clear();
    order.reserve(3 * before);  // at most a receive and a send per action
  }
}

Schedule receives_before_use(const Schedule& schedule) {
  Schedule result = schedule;
  clear_rows(result);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::vector<Action>& row = result.ranks[rank];
    for (const Action& action : schedule.ranks[rank]) {
      if (const std::optional<Action> receive = receive_before(schedule, action)) {
        row.push_back(*receive);
      }
      row.push_back(action);
      if (const std::optional<Action> send = send_after(schedule, action)) {
        row.push_back(*send);
      }
    }
  }
  return result;
}

Schedule receives_with_sends(const Schedule& schedule) {
  Schedule result = schedule;
  clear_rows(result);
  DependencyTracker tracker(schedule);  // without communication: a pair arrives when it is sent
  std::vector<std::size_t> next(schedule.ranks.size(), 0);
  bool advanced = true;
  while (advanced) {
    advanced = false;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      if (next[rank] == schedule.ranks[rank].size()) {
        continue;
      }
      const Action& action = schedule.ranks[rank][next[rank]];
      if (!tracker.is_ready(action)) {
        continue;
      }
      tracker.mark_run(action);
      ++next[rank];
      advanced = true;
      result.ranks[rank].push_back(action);
      if (const std::optional<Action> send = send_after(schedule, action)) {
        const Action receive = receive_of(*send);
        result.ranks[rank].push_back(*send);
        result.ranks[static_cast<std::size_t>(schedule.rank_of_stage(receive.stage))].push_back(
            receive);
      }
    }
  }
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    LOCKSTEP_CHECK(next[rank] == schedule.ranks[rank].size(),
                   "dependency cycle: " + describe_cycle(schedule, find_run_order(schedule).cycle));
  }
  return result;
}

}  // namespace

Schedule add_communication(const Schedule& schedule, ReceivePlacement placement) {
  for (const std::vector<Action>& order : schedule.ranks) {
    for (const Action& action : order) {
      LOCKSTEP_CHECK(!is_communication(action.kind), "already there: " + action_text(action));
    }
  }
  return placement == ReceivePlacement::kBeforeUse ? receives_before_use(schedule)
                                                   : receives_with_sends(schedule);
}

}  // namespace lockstep
