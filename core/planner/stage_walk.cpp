#include "core/planner/stage_walk.h"

#include "core/check.h"

namespace lockstep {
namespace {

/// Longest pattern looked for. The steady state of 1F1B has six actions.
constexpr std::size_t kLongestPattern = 12;

/// How often the `period` steps from `first` on are repeated, each time with micro-batches moved
/// by the same amount.
std::size_t repetitions(const std::vector<WalkStep>& steps, std::size_t first, std::size_t period) {
  const auto continues = [&](std::size_t i) {
    const WalkStep& now = steps[i];
    const WalkStep& before = steps[i - period];
    const bool second = i < first + 2 * period;
    return now.symbol == before.symbol &&
           (second || now.microbatch - before.microbatch ==
                          before.microbatch - steps[i - 2 * period].microbatch);
  };
  std::size_t end = first + period;
  while (end < steps.size() && continues(end)) {
    ++end;
  }
  return (end - first) / period;
}

StageWalk fold(const std::vector<WalkStep>& steps) {
  StageWalk walk;
  for (const WalkStep& step : steps) {
    ++walk.totals[step.symbol];
  }
  for (std::size_t at = 0; at < steps.size();) {
    std::size_t best_period = 1;
    std::size_t best_times = 1;
    for (std::size_t period = 1; period <= kLongestPattern && at + period <= steps.size();
         ++period) {
      const std::size_t times = repetitions(steps, at, period);
      if (times > 1 && times * period > best_times * best_period) {
        best_period = period;
        best_times = times;
      }
    }
    WalkStretch stretch;
    stretch.first = static_cast<std::uint32_t>(walk.steps.size());
    stretch.count = static_cast<std::uint32_t>(best_period);
    stretch.times = static_cast<std::int64_t>(best_times);
    for (std::size_t i = at; i < at + best_period; ++i) {
      walk.steps.push_back(steps[i]);
      if (best_times > 1) {
        walk.steps.back().move = steps[i + best_period].microbatch - steps[i].microbatch;
      }
    }
    // Single steps in a row are one stretch.
    const bool joins =
        best_times == 1 && !walk.stretches.empty() && walk.stretches.back().times == 1;
    if (joins) {
      walk.stretches.back().count += stretch.count;
    } else {
      walk.stretches.push_back(stretch);
    }
    at += best_period * best_times;
  }
  return walk;
}

}  // namespace

StageWalk stage_walk(const Schedule& schedule, std::int32_t rank) {
  std::vector<WalkStep> steps;
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
  for (const Action& action : schedule.ranks[static_cast<std::size_t>(rank)]) {
    std::size_t symbol = 0;
    if (action.kind == ActionKind::kForward) {
      symbol = forward_symbol(order_of(forwards++, schedule.microbatches));
    } else if (action.kind == ActionKind::kBackward) {
      symbol = backward_symbol(order_of(backwards++, schedule.microbatches));
    } else if (is_communication(action.kind)) {
      symbol = std::size_t{2} * kPieceOrderCount + static_cast<std::size_t>(action.kind) -
               static_cast<std::size_t>(ActionKind::kSendForward);
    } else {
      LOCKSTEP_CHECK(!is_compute(action.kind), "a walk has no split backward");
      continue;  // the data-parallel kind decides when it gathers and reduces
    }
    steps.push_back({static_cast<std::uint8_t>(symbol), action.microbatch, 0});
  }
  return fold(steps);
}

StageWalk stage_walk(std::int32_t microbatches) {
  std::vector<WalkStep> steps;
  for (std::int32_t i = 0; i < microbatches; ++i) {
    const PieceOrder order = order_of(i, microbatches);
    steps.push_back({static_cast<std::uint8_t>(forward_symbol(order)), i, 0});
    steps.push_back({static_cast<std::uint8_t>(backward_symbol(order)), i, 0});
  }
  return fold(steps);
}

}  // namespace lockstep
