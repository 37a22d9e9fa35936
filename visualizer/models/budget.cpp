#include "visualizer/models/budget.h"

#include <utility>

#include <fmt/format.h>

#include "core/report_text.h"

namespace lockstep::view {
namespace {

BudgetRow row_of(const StrategyOutcome& it) {
  BudgetRow row;
  row.words = it.words;
  if (!it.refused.empty()) {
    row.refused = true;
    row.note = it.refused;
    return row;
  }
  row.fits = it.memory.fits();
  row.worst_rank = it.memory.worst().rank;
  row.peak_bytes = it.memory.worst().peak_bytes();
  row.device_bytes = it.memory.device_bytes;
  row.step_s = it.report.step_time_s();
  row.tokens_per_s = it.report.tokens_per_s();
  row.mfu = it.report.mfu();
  row.exposed = it.report.exposed_fraction();
  row.bubble = it.report.bubble_fraction();
  row.sent_bytes = it.sent_bytes();
  if (!row.fits) {
    row.note = bytes_text(row.peak_bytes - row.device_bytes) + " too much";
  } else if (!it.memory.surely_fits()) {
    row.note = "may not fit: the upper bound does not";
  }
  return row;
}

void add(BudgetBar& bar, BudgetSegment segment, std::int64_t bytes) {
  if (bytes > 0) {
    segment.begin_bytes = bar.segments.empty() ? 0 : bar.segments.back().end_bytes;
    segment.end_bytes = segment.begin_bytes + bytes;
    bar.segments.push_back(std::move(segment));
  }
}

BudgetBar bar_of(const RankMemory& it, std::int64_t device_bytes) {
  BudgetBar bar;
  bar.rank = it.rank;
  bar.count = it.count;
  bar.peak_bytes = it.peak_bytes();
  bar.upper_bound_bytes = it.upper_bound_bytes();
  bar.device_bytes = device_bytes;
  bar.peak_text = it.peak_text;
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    BudgetSegment segment;
    segment.category = static_cast<Category>(i);
    segment.name = name_of(*segment.category);
    for (const LedgerRow& row : it.rows) {
      if (row.category == segment.category) {
        segment.terms.push_back(row.term);
      }
    }
    add(bar, std::move(segment), it.bytes[i]);
  }
  for (const MemoryTerm& term : it.non_tensor) {
    add(bar, {{}, false, term.name, 0, 0, {term}}, term.bytes);
  }
  for (const MemoryTerm& term : it.margins) {
    add(bar, {{}, true, term.name, 0, 0, {term}}, term.bytes);
  }
  return bar;
}

}  // namespace

Budget::Budget(const std::vector<StrategyOutcome>& outcomes) : outcomes_(outcomes) {
  rows_.reserve(outcomes.size());
  for (const StrategyOutcome& it : outcomes) {
    rows_.push_back(row_of(it));
  }
  BudgetRow* best = nullptr;
  for (BudgetRow& row : rows_) {
    if (row.fits && (best == nullptr || row.step_s < best->step_s)) {
      best = &row;
    }
  }
  if (best != nullptr) {
    best->fastest = true;
    best->note = best->note.empty() ? "fastest that fits" : "fastest that fits; " + best->note;
  }
}

std::optional<std::size_t> Budget::fastest() const {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].fastest) {
      return i;
    }
  }
  return {};
}

std::vector<BudgetBar> Budget::bars(std::size_t row) const {
  std::vector<BudgetBar> bars;
  if (outcomes_[row].refused.empty()) {
    const MemoryReport& memory = outcomes_[row].memory;
    for (const RankMemory& it : memory.ranks) {
      bars.push_back(bar_of(it, memory.device_bytes));
    }
  }
  return bars;
}

}  // namespace lockstep::view
