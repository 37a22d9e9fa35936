#include "simulator/simulate.h"

#include <cmath>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"
#include "simulator/engine.h"

namespace lockstep::sim {
namespace {

/// Half a minute and eight gigabytes.
constexpr std::int64_t kMostOperations = 100'000'000;

void refuse_bad(const WhatIf& what_if, int ranks) {
  const auto check_rank = [&](int rank) {
    if (rank < 0 || rank >= ranks) {
      throw UsageError("what-if", fmt::format("rank {}: there are {}, from 0", rank, ranks));
    }
  };
  for (const auto* list : {&what_if.slow_ranks, &what_if.skewed, &what_if.slow_links}) {
    for (const RankFactor& each : *list) {
      check_rank(each.rank);
      if (!(each.factor > 0 && each.factor <= 1e6)) {
        throw UsageError(
            "what-if",
            fmt::format(
                "factor {} of rank {}: must be above 0, at most 1e6", each.factor, each.rank));
      }
    }
  }
  if (what_if.failed) {
    check_rank(what_if.failed->rank);
    if (!(what_if.failed->at_s >= 0 && what_if.failed->at_s <= 1e6)) {
      throw UsageError("what-if", "the time of the failure must lie between 0 and 1e6 s");
    }
  }
  if (!(what_if.jitter >= 0 && what_if.jitter <= 2)) {
    throw UsageError("what-if", "jitter must lie between 0 and 2");
  }
}

/// Unfolded, jittered or much perturbed runs of thousands of ranks.
void refuse_too_many(const Lowered& lowered, const RankClasses& ranks) {
  std::int64_t operations = 0;
  for (const RankClass& each : ranks.classes) {
    operations += static_cast<std::int64_t>(
        lowered.programs[static_cast<std::size_t>(each.plan_class)].operations.size());
  }
  if (operations > kMostOperations) {
    throw NotSupportedError(
        "simulator",
        fmt::format("{} operations in {} kinds of rank, more than {}: fold equal ranks, or perturb "
                    "fewer",
                    operations,
                    ranks.classes.size(),
                    kMostOperations));
  }
}

int section_index(const Plan& plan, const SimulationOptions& options) {
  const Section* section = nullptr;
  if (options.section != SectionKind::kStep) {
    section = plan.find(options.section);
  } else {
    const auto steady = static_cast<int>(plan.variant_of_iteration.size()) - 1;
    section = &plan.step(options.iteration < 0 ? steady : options.iteration);
  }
  LOCKSTEP_CHECK(section != nullptr, "the plan has the section that is simulated");
  return static_cast<int>(section - plan.sections.data());
}

}  // namespace

Simulation simulate(const Plan& plan,
                    const ClusterSpec& cluster,
                    const SimulationOptions& options) {
  const ClusterSpec shared = as_shared(cluster, plan.mesh.world_size());
  return simulate(plan, shared, ClusterCosts(shared, plan.tf32), options);
}

Simulation simulate(const Plan& plan,
                    const ClusterSpec& cluster,
                    const CostModel& costs,
                    const SimulationOptions& options) {
  refuse_bad(options.what_if, plan.mesh.world_size());
  const int section = section_index(plan, options);
  const RankClasses ranks = classify(plan, cluster, options.what_if, options.fold);
  Lowered lowered = lower(plan, costs, section);
  refuse_too_many(lowered, ranks);
  check_stop(options.stop_check);
  Engine engine({plan, costs, options.what_if, ranks, lowered, options.stop_check});
  engine.run();
  Simulation result;
  result.trace.stalls = engine.take_stalls();
  result.trace.steps.push_back(engine.take_step());
  TraceStep& step = result.trace.steps.front();
  step.section = section;
  step.iteration = options.iteration < 0 ? static_cast<int>(plan.variant_of_iteration.size()) - 1
                                         : options.iteration;
  for (const TraceTrack& track : step.tracks) {
    const auto index = static_cast<std::size_t>(track.class_index);
    result.operations += static_cast<std::int64_t>(
        plan.sections[static_cast<std::size_t>(section)].programs[index].operations.size());
  }
  result.events = engine.events();
  return result;
}

}  // namespace lockstep::sim
