#include "simulator/compare.h"

#include "core/error.h"
#include "core/planner/planner.h"
#include "simulator/simulate.h"

namespace lockstep::sim {

StrategyOutcome compare(const std::string& words,
                        const Scenario& scenario,
                        bool named,
                        const StopCheck& stop_check) {
  StrategyOutcome outcome;
  outcome.words = words;
  const Problems problems = validate(scenario);
  if (!problems.empty()) {
    outcome.refused = problems.one_line();
    return outcome;
  }
  try {
    const Plan plan = make_plan(scenario, {false, false, stop_check});
    check_stop(stop_check);
    outcome.memory = memory_report(scenario, {.rows = named, .plan = &plan});
    SimulationOptions options;
    options.stop_check = stop_check;
    const Simulation run = simulate(plan, scenario.cluster, options);
    check_stop(stop_check);
    outcome.report = make_report(plan, run.trace, report_facts(scenario));
  } catch (const InterruptedError&) {
    throw;
  } catch (const Error& error) {
    outcome.refused = error.what();
  }
  return outcome;
}

}  // namespace lockstep::sim
