// RunComparison: one step of a plan as it was simulated and as it was run, operation by operation.
//
// Of an operation counts the time from its start (all members there) to its end: what it cost, not
// what it waited for; of several steps the median, for each by itself. Families put operations
// together that cost for the same reason; their sums are means over the ranks, and show where a
// prediction is off.
//
//   const RunComparison it = compare_run(plan, simulated_step, measured_steps);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/trace.h"

namespace lockstep {

struct OperationTimes {
  std::int32_t rank = 0;
  std::uint32_t index = 0;  ///< into the rank's program
  std::string kind;         ///< kind_of() it
  double predicted_s = 0;
  double measured_s = 0;
};

/// Operations of one family or kind: of a rank's step, as means over all ranks.
struct TimesSum {
  std::string name;
  bool communication = false;
  double operations = 0;
  double predicted_s = 0;
  double measured_s = 0;
};

struct RunComparison {
  double predicted_s = 0;                  ///< step time
  double measured_s = 0;                   ///< median
  std::vector<OperationTimes> operations;  ///< by rank, in program order; skipped ones are left out
  std::vector<TimesSum> families;          ///< "products", "attention", ..., "dp all_reduce"
  std::vector<TimesSum> kinds;             ///< "matmul", "norm_grad", "send", ...
  /// (predicted - measured) / measured.
  double error() const;
};

/// (predicted - measured) / measured; 0 when nothing was measured.
double relative_error(double predicted, double measured);

/// "matmul", "all_gather", "send": of the operation itself.
std::string kind_of(const Operation& op);
/// What an operation costs time for: "products", "attention", "norm", "activation", "loss",
/// "optimizer", "copies", "embedding", "host"; of communication group and kind.
std::string family_of(const Plan& plan, const Operation& op);

/// All steps must be of the plan's same section, at least one measured. BadInputError when one does
/// not fit the plan.
RunComparison compare_run(const Plan& plan,
                          const TraceStep& predicted,
                          std::span<const TraceStep> measured);

}  // namespace lockstep
