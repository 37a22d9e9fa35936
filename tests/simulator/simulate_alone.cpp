// The event simulation by itself: a test looks into this program for the closed form, which must
// not be there.
#include "core/planner/planner.h"
#include "simulator/simulate.h"

int main() {
  lockstep::Scenario scenario;
  scenario.training.seq_len = 64;
  const lockstep::Scenario resolved = lockstep::resolved(scenario);
  const lockstep::Plan plan = lockstep::make_plan(resolved);
  return lockstep::sim::simulate(plan, resolved.cluster).trace.steps.empty() ? 1 : 0;
}
