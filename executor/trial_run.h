// TrialRun: a few steps of a scenario on made-up batches, to be held against its plan: how long
// they took, what every rank's Communicators were asked for, what every rank's Device had lent.
//
//   const Plan plan = make_plan(scenario, {.evaluate = false, .save = false});
//   const TrialRun run = run_trial(scenario, plan, {});
//   compare_run(plan, simulated_step, run.steps);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/plan_summary.h"
#include "core/scenario.h"
#include "core/trace.h"
#include "executor/job.h"

namespace lockstep::exec {

struct TrialOptions {
  int warmup = 2;  ///< steps that do not count, beside those that differ from later ones
  int steps = 9;   ///< that count
  JobOptions job;
  /// Asked before every step; true: no more of them. May be empty.
  std::function<bool()> stop;
};

struct TrialRun {
  std::vector<TraceStep> steps;      ///< those that count, in order
  double processor_s = 0;            ///< that all threads of this process took for such a step
  std::vector<CategoryBytes> peaks;  ///< by rank: where the device had lent most in a step
  /// First way in which what communicators recorded differs from the plan, in words; "" = none.
  std::string transfer_difference;
};

/// Init and steps on this machine. NotSupportedError for what has no kernels; a run that
/// was stopped before a step that counts has no steps.
TrialRun run_trial(const Scenario& scenario, const Plan& plan, const TrialOptions& options);

/// What the program of `rank` in `section` asks of communicator `communicator`, in order.
std::vector<IssuedTransfer> planned_transfers(const Plan& plan,
                                              int rank,
                                              int section,
                                              std::size_t communicator);

/// "operation 3 of dp on rank 1: planned all_reduce of 40 fp32, issued all_reduce of 41 fp32"; ""
/// when the two are equal.
std::string first_difference(std::span<const IssuedTransfer> planned,
                             std::span<const IssuedTransfer> issued);

/// Device bytes by category when most was lent, of allocations and frees in order. What the first
/// `passed` of them leave is where it begins.
CategoryBytes highest_lent(std::span<const MemoryEvent> events, std::size_t passed);

}  // namespace lockstep::exec
