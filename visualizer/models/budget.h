// Budget: strategies side by side, and what the memory of each consists of: a table, and for every
// class of ranks one bar stacked by category, with the line of the device.
//
//     const Budget budget(outcomes);                    // sim::compare() made them
//     for (const BudgetRow& row : budget.rows()) ...
//     for (const BudgetBar& bar : budget.bars(selected))
//       for (const BudgetSegment& it : bar.segments) box(it.begin_bytes, it.end_bytes, it.name);
//
// What it is not: a simulation, or advice (core/memory_advice.h). The outcomes must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/strategy_outcome.h"

namespace lockstep::view {

struct BudgetRow {
  std::string words;
  bool refused = false;  ///< then only `note` holds
  bool fits = false;
  bool fastest = false;  ///< of those that fit
  int worst_rank = 0;
  std::int64_t peak_bytes = 0;  ///< on it
  std::int64_t device_bytes = 0;
  double step_s = 0;
  double tokens_per_s = 0;
  double mfu = 0;
  double exposed = 0;     ///< fraction
  double bubble = 0;      ///< fraction
  double sent_bytes = 0;  ///< by a rank, mean
  std::string note;       ///< why not, or what to know
};

/// Part of a bar.
struct BudgetSegment {
  std::optional<Category> category;  ///< nothing: outside of the plan, or a margin
  bool margin = false;               ///< between the point estimate and the upper bound
  std::string name;
  std::int64_t begin_bytes = 0;
  std::int64_t end_bytes = 0;
  /// What it consists of, with formulas; they add up to it. Of a category only where buffers were
  /// named (MemoryReportOptions::rows).
  std::vector<MemoryTerm> terms;
  std::int64_t bytes() const { return end_bytes - begin_bytes; }
};

/// A class of ranks.
struct BudgetBar {
  int rank = 0;   ///< the first
  int count = 1;  ///< ranks that hold the same
  std::int64_t peak_bytes = 0;
  std::int64_t upper_bound_bytes = 0;
  std::int64_t device_bytes = 0;
  std::string peak_text;                ///< the operation at the peak
  std::vector<BudgetSegment> segments;  ///< upwards, without gaps; empty ones are left out
};

class Budget {
 public:
  explicit Budget(const std::vector<StrategyOutcome>& outcomes);

  /// In the order of the outcomes.
  const std::vector<BudgetRow>& rows() const { return rows_; }
  /// The row that is fastest of those that fit; nothing when none fits.
  std::optional<std::size_t> fastest() const;
  /// Highest first; none of a strategy that was refused.
  std::vector<BudgetBar> bars(std::size_t row) const;

 private:
  const std::vector<StrategyOutcome>& outcomes_;
  std::vector<BudgetRow> rows_;
};

}  // namespace lockstep::view
