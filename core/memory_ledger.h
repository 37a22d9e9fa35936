// MemoryLedger: what one class of ranks holds at the moment when it holds most.
//
// It walks the emitted plan (init, then every form of the step) in memory accounting order (rule R1
// of core/plan.h), stops at the peak, and names every buffer that is alive there: buffers of one
// origin are one row with a formula that has the values put in. Rows of a category add up to the
// figure of that category, because they are the buffers themselves.
//
// Formulas are arithmetic: numbers joined by x, +, /, ceil(a / b), with words for the reader
// between, so that a test can work them out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/plan_summary.h"
#include "core/planner/context.h"

namespace lockstep {

/// How a figure came about.
enum class Basis : std::uint8_t {
  kComputed,  ///< from the plan
  kMeasured,  ///< measured by somebody else, on hardware that may differ from yours
  kAssumed,
};
std::string_view name_of(Basis basis);

/// One addend of a figure.
struct MemoryTerm {
  std::string name;
  std::string formula;     ///< gives `bytes` when worked out
  std::int64_t bytes = 0;  ///< [B]
  std::string source;
  Basis basis = Basis::kComputed;
};

struct LedgerRow {
  Category category = Category::kParameter;
  std::int64_t buffers = 0;
  MemoryTerm term;
};

struct MemoryLedger {
  int section = 0;  ///< index into Plan::sections
  MemoryPeak peak;
  std::string action;  ///< what is issued at the peak: "matmul", "all_gather dp"
  /// Live buffers at the peak that hold device memory of their own, in the order of their ids.
  std::vector<std::uint32_t> live;
  std::vector<LedgerRow> rows;  ///< by category, then by falling bytes; empty unless named
};

/// `named` false leaves out the rows, which cost more than the walk.
MemoryLedger memory_ledger(const Plan& plan,
                           const PlannerContext& context,
                           int class_index,
                           bool named);

}  // namespace lockstep
