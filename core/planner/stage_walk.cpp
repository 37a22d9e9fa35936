#include "core/planner/stage_walk.h"

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

StageWalk fold(const std::vector<WalkStep>& steps, std::int32_t chunks) {
  StageWalk walk;
  walk.totals.assign(static_cast<std::size_t>(chunks) * kChunkSymbols, 0);
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
  struct Done {
    std::int32_t forwards = 0;
    std::int32_t backwards = 0;
    std::int32_t weights = 0;
  };
  std::vector<WalkStep> steps;
  std::vector<Done> done(static_cast<std::size_t>(schedule.chunks));
  for (const Action& action : schedule.ranks[static_cast<std::size_t>(rank)]) {
    if (!is_compute(action.kind) && !is_communication(action.kind)) {
      continue;  // the data-parallel kind decides when it gathers and reduces
    }
    const auto chunk = static_cast<std::size_t>(schedule.chunk_of_stage(action.stage));
    const auto pass = [&](PassKind kind, std::int32_t& count) {
      return pass_symbol(chunk, kind, order_of(count++, schedule.microbatches));
    };
    std::size_t symbol = 0;
    if (action.kind == ActionKind::kForward) {
      symbol = pass(PassKind::kForward, done[chunk].forwards);
    } else if (gives_input_gradient(action.kind)) {
      symbol = pass(PassKind::kBackward, done[chunk].backwards);
    } else if (action.kind == ActionKind::kBackwardWeight) {
      symbol = pass(PassKind::kWeight, done[chunk].weights);
    } else {
      symbol = message_symbol(chunk,
                              static_cast<std::size_t>(action.kind) -
                                  static_cast<std::size_t>(ActionKind::kSendForward));
    }
    steps.push_back({static_cast<std::uint32_t>(symbol), action.microbatch, 0});
  }
  return fold(steps, schedule.chunks);
}

StageWalk stage_walk(std::int32_t microbatches) {
  std::vector<WalkStep> steps;
  for (std::int32_t i = 0; i < microbatches; ++i) {
    const PieceOrder order = order_of(i, microbatches);
    for (const PassKind kind : {PassKind::kForward, PassKind::kBackward}) {
      steps.push_back({static_cast<std::uint32_t>(pass_symbol(0, kind, order)), i, 0});
    }
  }
  return fold(steps, 1);
}

}  // namespace lockstep
