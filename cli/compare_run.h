// compare --run: scenarios simulated and run for real on this machine, side by side: times of every
// operation, memory by category, and whether the collectives that were issued are the plan's.
#pragma once

#include <string>
#include <vector>

#include "core/plan_summary.h"
#include "core/run_comparison.h"
#include "core/scenario.h"

namespace lockstep::cli {

struct ComparedRun {
  std::string words;    ///< the strategy, as it was asked for
  std::string refused;  ///< why it cannot run; empty when it did
  std::int64_t ranks = 0;
  RunComparison times;
  std::vector<double> step_seconds;  ///< of all steps that count
  double processor_s = 0;            ///< that the step took of all cores together
  int worst_rank = 0;                ///< the one whose plan holds most
  CategoryBytes planned{};           ///< on it, where it holds most
  CategoryBytes measured{};
  bool memory_matches = false;      ///< on every rank and category
  std::string transfer_difference;  ///< between plan and communicators; "" = none
};

/// Simulates on scenario.cluster and runs `steps` steady steps. Reasons not to run come back in
/// `refused`. InterruptedError after Ctrl-C.
ComparedRun compare_real(const Scenario& scenario, const std::string& words, int steps);

/// Tables of one run: families of work, kinds of operation, memory.
std::string run_text(const ComparedRun& run);
/// One line per strategy, and the median of the errors.
std::string runs_table(const std::vector<ComparedRun>& runs);
/// The contract's object for one run; for several, "strategies": a list of them.
std::string runs_json(const std::vector<ComparedRun>& runs, bool one);

}  // namespace lockstep::cli
