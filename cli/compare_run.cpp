#include "cli/compare_run.h"

#include <chrono>

#include "cli/interrupt.h"
#include "core/error.h"
#include "core/memory_timeline.h"
#include "core/planner/planner.h"
#include "executor/trial_run.h"
#include "simulator/simulate.h"

namespace lockstep::cli {
namespace {

void hold_memory(const Plan& plan, const exec::TrialRun& real, ComparedRun& run) {
  run.memory_matches = true;
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    const CategoryBytes planned =
        highest_memory(plan, plan.class_of_rank(rank), real.steps.back().section).bytes;
    const CategoryBytes& measured = real.peaks[static_cast<std::size_t>(rank)];
    run.memory_matches = run.memory_matches && planned == measured;
    if (rank == 0 || total(planned) > total(run.planned)) {
      run.worst_rank = rank;
      run.planned = planned;
      run.measured = measured;
    }
  }
}

}  // namespace

ComparedRun compare_real(const Scenario& scenario, const std::string& words, int steps) {
  ComparedRun run;
  run.words = words;
  run.ranks = scenario.strategy.world_size();
  const Problems problems = validate(scenario);
  if (!problems.empty()) {
    run.refused = problems.one_line();
    return run;
  }
  const Interrupt interrupt;
  try {
    const Plan plan = make_plan(scenario, {.evaluate = false, .save = false});
    const sim::Simulation simulation = sim::simulate(plan, scenario.cluster);
    exec::TrialOptions options;
    options.steps = steps;
    options.job.local.timeout = std::chrono::minutes(1);
    options.stop = [&interrupt] { return interrupt.requested(); };
    const exec::TrialRun real = exec::run_trial(scenario, plan, options);
    if (!interrupt.requested()) {
      run.times = compare_run(plan, simulation.trace.steps.front(), real.steps);
      for (const TraceStep& step : real.steps) {
        run.step_seconds.push_back(static_cast<double>(step.end - step.begin) * 1e-9);
      }
      run.processor_s = real.processor_s;
      run.transfer_difference = real.transfer_difference;
      hold_memory(plan, real, run);
    }
  } catch (const NotSupportedError& error) {
    run.refused = error.what();
  }
  if (interrupt.requested()) {
    throw InterruptedError("compare", "interrupted");
  }
  return run;
}

}  // namespace lockstep::cli
