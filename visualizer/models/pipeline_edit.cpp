#include "visualizer/models/pipeline_edit.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/planner/schedule/action_csv.h"

namespace lockstep::view {
namespace {

std::size_t at(std::int32_t index) {
  return static_cast<std::size_t>(index);
}

/// Place of F, B and I in the one chain that a micro-batch goes through: all stages forward, then
/// all of them backward.
std::int32_t chain_place(const Schedule& schedule, const Action& action) {
  return action.kind == ActionKind::kForward ? action.stage
                                             : 2 * schedule.stages() - 1 - action.stage;
}

/// Whether `first` must have run before `then`, whatever lies between.
bool must_precede(const Schedule& schedule, const Action& first, const Action& then) {
  if (first.microbatch != then.microbatch || first.kind == ActionKind::kBackwardWeight) {
    return false;
  }
  if (then.kind == ActionKind::kBackwardWeight) {
    return first.stage == then.stage;
  }
  return chain_place(schedule, first) < chain_place(schedule, then);
}

std::string pass_text(const Action& action) {
  switch (action.kind) {
    case ActionKind::kForward:
      return fmt::format("the forward of stage {}", action.stage);
    case ActionKind::kBackwardInput:
      return fmt::format("the input gradient of stage {}", action.stage);
    case ActionKind::kBackwardWeight:
      return fmt::format("the weight gradient of stage {}", action.stage);
    default:
      return fmt::format("the backward of stage {}", action.stage);
  }
}

/// What `then` takes from `first`.
std::string reason_text(const Action& first, const Action& then) {
  if (then.kind == ActionKind::kForward) {
    return fmt::format("needs the output of stage {}", first.stage);
  }
  if (first.kind == ActionKind::kForward) {
    return fmt::format("needs what the forward of stage {} keeps", first.stage);
  }
  if (then.kind == ActionKind::kBackwardWeight) {
    return "needs the gradient that its input-gradient pass has received";
  }
  return fmt::format("needs the gradient of stage {}", first.stage);
}

/// Two cells of one row in the wrong order; the first such pair.
std::optional<std::string> broken_in_row(const Schedule& schedule) {
  for (const std::vector<Action>& row : schedule.ranks) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (std::size_t j = i + 1; j < row.size(); ++j) {
        if (must_precede(schedule, row[j], row[i])) {
          return fmt::format("{} cannot run before {}: {} {} (micro-batch {})",
                             action_text(row[i]),
                             action_text(row[j]),
                             pass_text(row[i]),
                             reason_text(row[j], row[i]),
                             row[i].microbatch);
        }
      }
    }
  }
  return std::nullopt;
}

/// Each of the cycle waits for something that stands behind the next one.
std::string circle_text(const Schedule& schedule, const std::vector<ActionPlace>& cycle) {
  const DependencyTracker tracker(schedule);
  std::string text = "the ranks would wait for each other: ";
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const auto action_at = [&](const ActionPlace& place) {
      return schedule.ranks[at(place.rank)][at(place.index)];
    };
    const Action waiting = action_at(cycle[i]);
    const std::optional<Action> need = tracker.need_of(waiting);
    const ActionPlace& next = cycle[(i + 1) % cycle.size()];
    text += i == 0 ? "" : "; ";
    text += fmt::format("{} on rank {}", action_text(waiting), cycle[i].rank);
    if (need) {
      text += fmt::format(" {} ({}), which stands behind {} on rank {}",
                          reason_text(*need, waiting),
                          action_text(*need),
                          action_text(action_at(next)),
                          next.rank);
    }
  }
  return text;
}

}  // namespace

std::optional<std::string> broken_dependency(const Schedule& schedule) {
  const RunOrder run = find_run_order(schedule);
  if (run.cycle.empty()) {
    return std::nullopt;
  }
  if (std::optional<std::string> text = broken_in_row(schedule)) {
    return text;
  }
  return circle_text(schedule, run.cycle);
}

Schedule repaired(const Schedule& schedule) {
  Schedule result = compute_only(schedule);
  DependencyTracker tracker(result);
  std::vector<std::size_t> next(result.ranks.size(), 0);
  const auto run_heads = [&] {
    bool any = false;
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      const std::vector<Action>& row = result.ranks[rank];
      while (next[rank] < row.size() && tracker.is_ready(row[next[rank]])) {
        tracker.mark_run(row[next[rank]++]);
        any = true;
      }
    }
    return any;
  };
  // Pulls the ready action that stands nearest behind the head of its row to that head.
  const auto pull = [&] {
    std::size_t best_rank = 0;
    std::size_t best_distance = 0;
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      const std::vector<Action>& row = result.ranks[rank];
      for (std::size_t i = next[rank] + 1; i < row.size(); ++i) {
        const std::size_t distance = i - next[rank];
        if (best_distance != 0 && distance >= best_distance) {
          break;
        }
        if (tracker.is_ready(row[i])) {
          best_rank = rank;
          best_distance = distance;
          break;
        }
      }
    }
    if (best_distance == 0) {
      return false;
    }
    const auto head =
        result.ranks[best_rank].begin() + static_cast<std::ptrdiff_t>(next[best_rank]);
    std::rotate(head,
                head + static_cast<std::ptrdiff_t>(best_distance),
                head + static_cast<std::ptrdiff_t>(best_distance) + 1);
    return true;
  };
  while (run_heads() || pull()) {
  }
  return result;
}

PipelineEdit::PipelineEdit(const Schedule& schedule, const UnitCosts& costs) {
  const Schedule computes = compute_only(schedule);
  if (const std::optional<std::string> broken = broken_dependency(computes)) {
    throw UsageError("pipeline", *broken);
  }
  schedule_ = computes;
  set_costs(costs);
}

void PipelineEdit::set_costs(const UnitCosts& costs) {
  if (std::min({costs.forward, costs.backward_input, costs.backward_weight, costs.message}) < 0) {
    throw UsageError("pipeline", "a cost is negative");
  }
  costs_ = costs;
  grid_ = pipeline_grid(schedule_, costs_);
}

void PipelineEdit::set(Schedule schedule) {
  schedule_ = std::move(schedule);
  grid_ = pipeline_grid(schedule_, costs_);
}

std::optional<std::string> PipelineEdit::misplaced(const ActionPlace& from,
                                                   const ActionPlace& to) const {
  const auto ranks = static_cast<std::int32_t>(schedule_.ranks.size());
  if (from.rank < 0 || from.rank >= ranks || from.index < 0 ||
      at(from.index) >= schedule_.ranks[at(from.rank)].size()) {
    return "there is no such cell";
  }
  const Action& action = schedule_.ranks[at(from.rank)][at(from.index)];
  if (to.rank != from.rank) {
    return fmt::format("{} cannot run on rank {}: the weights of stage {} live on rank {}",
                       action_text(action),
                       to.rank,
                       action.stage,
                       from.rank);
  }
  if (to.index < 0 || at(to.index) >= schedule_.ranks[at(to.rank)].size()) {
    return fmt::format("rank {} has no place {}", to.rank, to.index);
  }
  return std::nullopt;
}

Schedule PipelineEdit::moved(const ActionPlace& from, const ActionPlace& to) const {
  Schedule trial = schedule_;
  std::vector<Action>& row = trial.ranks[at(from.rank)];
  const Action action = row[at(from.index)];
  row.erase(row.begin() + from.index);
  row.insert(row.begin() + to.index, action);
  return trial;
}

std::optional<std::string> PipelineEdit::refusal(const ActionPlace& from,
                                                 const ActionPlace& to) const {
  if (std::optional<std::string> reason = misplaced(from, to)) {
    return reason;
  }
  return broken_dependency(moved(from, to));
}

std::optional<std::string> PipelineEdit::move(const ActionPlace& from, const ActionPlace& to) {
  std::optional<std::string> reason = refusal(from, to);
  if (!reason) {
    set(moved(from, to));
  }
  return reason;
}

std::optional<std::string> PipelineEdit::move_and_repair(const ActionPlace& from,
                                                         const ActionPlace& to) {
  std::optional<std::string> reason = misplaced(from, to);
  if (!reason) {
    set(repaired(moved(from, to)));
  }
  return reason;
}

std::int32_t PipelineEdit::index_at(const ActionPlace& from, std::int64_t time) const {
  std::int32_t index = 0;
  const std::vector<PipelineCell>& cells = grid_.rows[at(from.rank)].cells;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool before = cells[i].begin + cells[i].end <= 2 * time;
    index += before && i != at(from.index) ? 1 : 0;
  }
  return index;
}

std::string PipelineEdit::csv() const {
  return write_action_csv(schedule_);
}

PipelineEdit PipelineEdit::from_csv(std::string_view text,
                                    std::string_view source,
                                    const UnitCosts& costs) {
  return PipelineEdit(read_action_csv(text, source), costs);
}

Scenario with_schedule(const Scenario& scenario, const Schedule& schedule) {
  Scenario result = scenario;
  result.strategy.pipeline.degree = schedule.pipeline_degree;
  result.strategy.pipeline.chunks = schedule.chunks;
  result.strategy.pipeline.actions_csv = write_action_csv(compute_only(schedule));
  if (result.training.accumulate != schedule.microbatches) {
    result.training.accumulate = schedule.microbatches;
    result.training.global_batch = 0;  // follows
  }
  return result;
}

}  // namespace lockstep::view
