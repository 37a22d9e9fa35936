#include "core/planner/schedule/dependency.h"

#include <algorithm>

#include "core/check.h"

namespace lockstep {
namespace {

bool has_communication(const Schedule& schedule) {
  for (const std::vector<Action>& order : schedule.ranks) {
    for (const Action& action : order) {
      if (is_communication(action.kind)) {
        return true;
      }
    }
  }
  return false;
}

/// Kinds whose completion somebody waits for, numbered; B and I answer the same need.
enum Flag : std::size_t {
  kForwardDone,
  kInputGradientDone,
  kForwardSent,
  kForwardReceived,
  kBackwardSent,
  kBackwardReceived,
  kFlagCount,
};

std::optional<Flag> flag_kind(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return kForwardDone;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      return kInputGradientDone;
    case ActionKind::kSendForward:
      return kForwardSent;
    case ActionKind::kRecvForward:
      return kForwardReceived;
    case ActionKind::kSendBackward:
      return kBackwardSent;
    case ActionKind::kRecvBackward:
      return kBackwardReceived;
    default:
      return std::nullopt;
  }
}

}  // namespace

DependencyTracker::DependencyTracker(const Schedule& schedule)
    : schedule_(schedule),
      with_communication_(has_communication(schedule)),
      has_run_(kFlagCount * static_cast<std::size_t>(schedule.stages()) *
               static_cast<std::size_t>(schedule.microbatches)) {}

std::size_t DependencyTracker::flag_of(const Action& action) const {
  LOCKSTEP_CHECK(action.stage >= 0 && action.stage < schedule_.stages() && action.microbatch >= 0 &&
                     action.microbatch < schedule_.microbatches,
                 "action outside of the schedule: " + action_text(action));
  const auto stage = static_cast<std::size_t>(action.stage);
  const auto microbatch = static_cast<std::size_t>(action.microbatch);
  const auto microbatches = static_cast<std::size_t>(schedule_.microbatches);
  return (stage * microbatches + microbatch) * kFlagCount + *flag_kind(action.kind);
}

std::optional<Action> DependencyTracker::need_of(const Action& action) const {
  const std::int32_t stage = action.stage;
  const std::int32_t microbatch = action.microbatch;
  switch (action.kind) {
    case ActionKind::kForward:
      if (stage == 0) {
        return std::nullopt;
      }
      if (with_communication_ && schedule_.crosses_ranks_after(stage - 1)) {
        return Action{ActionKind::kRecvForward, stage, microbatch};
      }
      return Action{ActionKind::kForward, stage - 1, microbatch};
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      if (stage + 1 == schedule_.stages()) {
        return Action{ActionKind::kForward, stage, microbatch};
      }
      if (with_communication_ && schedule_.crosses_ranks_after(stage)) {
        return Action{ActionKind::kRecvBackward, stage, microbatch};
      }
      return Action{ActionKind::kBackward, stage + 1, microbatch};
    case ActionKind::kBackwardWeight:
      return Action{ActionKind::kBackwardInput, stage, microbatch};
    case ActionKind::kSendForward:
      return Action{ActionKind::kForward, stage, microbatch};
    case ActionKind::kSendBackward:
      return Action{ActionKind::kBackward, stage, microbatch};
    case ActionKind::kRecvForward:
      return Action{ActionKind::kSendForward, stage - 1, microbatch};
    case ActionKind::kRecvBackward:
      return Action{ActionKind::kSendBackward, stage + 1, microbatch};
    default:
      return std::nullopt;  // unshard, reshard, reduce: only their place in the row counts
  }
}

bool DependencyTracker::is_ready(const Action& action) const {
  const std::optional<Action> need = need_of(action);
  return !need || has_run_[flag_of(*need)] != 0;
}

void DependencyTracker::mark_run(const Action& action) {
  if (flag_kind(action.kind)) {
    has_run_[flag_of(action)] = 1;
  }
}

std::optional<std::int32_t> DependencyTracker::rank_waiting_for(const Action& action) const {
  switch (action.kind) {
    case ActionKind::kForward:
    case ActionKind::kSendForward:
      if (action.stage + 1 < schedule_.stages()) {
        return schedule_.rank_of_stage(action.stage + 1);
      }
      return std::nullopt;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
    case ActionKind::kSendBackward:
      if (action.stage > 0) {
        return schedule_.rank_of_stage(action.stage - 1);
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

namespace {

/// The rank that has to run the need of a blocked action. A need that is met on the rank itself
/// blames the rank: its own row is in the wrong order.
std::int32_t rank_to_blame(const Schedule& schedule, const Action& need) {
  return schedule.rank_of_stage(need.stage);
}

/// From a blocked rank follow "waits for" until a rank repeats; only the loop is kept.
std::vector<ActionPlace> follow_cycle(const Schedule& schedule,
                                      const DependencyTracker& tracker,
                                      const std::vector<std::int32_t>& next) {
  std::int32_t rank = 0;
  const auto head = [&](std::int32_t r) { return next[static_cast<std::size_t>(r)]; };
  const auto row = [&](std::int32_t r) -> const std::vector<Action>& {
    return schedule.ranks[static_cast<std::size_t>(r)];
  };
  while (head(rank) == static_cast<std::int32_t>(row(rank).size())) {
    ++rank;  // this rank has finished
  }
  std::vector<ActionPlace> path;
  while (true) {
    const auto seen = std::find_if(
        path.begin(), path.end(), [rank](const ActionPlace& place) { return place.rank == rank; });
    if (seen != path.end()) {
      return {seen, path.end()};
    }
    if (head(rank) == static_cast<std::int32_t>(row(rank).size())) {
      return {path.back()};  // waits for an action that a finished rank does not have
    }
    path.push_back({rank, head(rank)});
    const Action& blocked = row(rank)[static_cast<std::size_t>(head(rank))];
    rank = rank_to_blame(schedule, *tracker.need_of(blocked));
  }
}

}  // namespace

RunOrder find_run_order(const Schedule& schedule) {
  const std::size_t rank_count = schedule.ranks.size();
  DependencyTracker tracker(schedule);
  RunOrder result;
  std::vector<std::int32_t> next(rank_count, 0);  // per rank: the first action that has not run
  std::vector<std::uint8_t> is_awake(rank_count, 1);
  std::vector<std::int32_t> awake;
  for (std::size_t rank = rank_count; rank-- > 0;) {
    awake.push_back(static_cast<std::int32_t>(rank));
  }
  while (!awake.empty()) {
    const std::int32_t rank = awake.back();
    awake.pop_back();
    const auto slot = static_cast<std::size_t>(rank);
    is_awake[slot] = 0;
    const std::vector<Action>& order = schedule.ranks[slot];
    for (std::int32_t& index = next[slot]; static_cast<std::size_t>(index) < order.size();
         ++index) {
      const Action& action = order[static_cast<std::size_t>(index)];
      if (!tracker.is_ready(action)) {
        break;
      }
      tracker.mark_run(action);
      result.order.push_back({rank, index});
      const std::optional<std::int32_t> waiting = tracker.rank_waiting_for(action);
      if (waiting && *waiting != rank && is_awake[static_cast<std::size_t>(*waiting)] == 0) {
        is_awake[static_cast<std::size_t>(*waiting)] = 1;
        awake.push_back(*waiting);
      }
    }
  }
  std::size_t total = 0;
  for (const std::vector<Action>& order : schedule.ranks) {
    total += order.size();
  }
  if (result.order.size() < total) {
    result.cycle = follow_cycle(schedule, tracker, next);
  }
  return result;
}

std::string describe_cycle(const Schedule& schedule, const std::vector<ActionPlace>& cycle) {
  const DependencyTracker tracker(schedule);
  std::string text;
  for (const ActionPlace& place : cycle) {
    const Action& action =
        schedule.ranks[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.index)];
    const std::optional<Action> need = tracker.need_of(action);
    text += text.empty() ? "" : "; ";
    text += "rank " + std::to_string(place.rank) + ": " + action_text(action);
    if (need) {
      text += " waits for " + action_text(*need) + " of rank " +
              std::to_string(rank_to_blame(schedule, *need));
    }
  }
  return text;
}

}  // namespace lockstep
