#include "simulator/compare.h"

#include "core/error.h"
#include "core/planner/planner.h"
#include "simulator/simulate.h"

namespace lockstep::sim {

StrategyOutcome compare(const std::string& words,
                        const Scenario& scenario,
                        bool named,
                        const Checkpoint& checkpoint) {
  StrategyOutcome outcome;
  outcome.words = words;
  const Problems problems = validate(scenario);
  if (!problems.empty()) {
    outcome.refused = problems.one_line();
    return outcome;
  }
  try {
    const Plan plan = make_plan(scenario, {false, false, checkpoint});
    pass_checkpoint(checkpoint);
    outcome.memory = memory_report(scenario, {.rows = named, .plan = &plan});
    SimulationOptions options;
    options.checkpoint = checkpoint;
    const Simulation run = simulate(plan, scenario.cluster, options);
    pass_checkpoint(checkpoint);
    outcome.report = make_report(plan, run.trace, report_facts(scenario));
  } catch (const InterruptedError&) {
    throw;
  } catch (const Error& error) {
    outcome.refused = error.what();
  }
  return outcome;
}

}  // namespace lockstep::sim
