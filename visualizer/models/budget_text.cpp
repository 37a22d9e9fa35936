#include "visualizer/models/budget_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/report_text.h"
#include "visualizer/models/memory_stack_text.h"

namespace lockstep::view {
namespace {

std::string table_text(const Budget& budget) {
  TextTable table({{"strategy"},
                   {"fits"},
                   {"peak", Align::kRight},
                   {"rank", Align::kRight},
                   {"ms/step", Align::kRight},
                   {"tokens/s", Align::kRight},
                   {"sent", Align::kRight},
                   {"bubble %", Align::kRight},
                   {"note"}});
  for (const BudgetRow& row : budget.rows()) {
    if (row.refused) {
      table.add({row.words, "-", "-", "-", "-", "-", "-", "-", "refused, see below"});
      continue;
    }
    table.add({row.words,
               row.fits ? "yes" : "no",
               bytes_text(row.peak_bytes),
               std::to_string(row.worst_rank),
               fmt::format("{:.1f}", row.step_s * 1e3),
               grouped(std::llround(row.tokens_per_s)),
               bytes_text(std::llround(row.sent_bytes)),
               fmt::format("{:.1f}", row.bubble * 100),
               row.note});
  }
  std::string text = table.text("  ");
  for (const BudgetRow& row : budget.rows()) {
    text += row.refused ? fmt::format("  {}: {}\n", row.words, row.note) : "";
  }
  return text;
}

char letter_of_segment(const BudgetSegment& it) {
  return it.margin ? '?' : it.category ? letter_of(*it.category) : 'X';
}

/// Borders are rounded, so that the length of the bar is that of its sum.
std::string bar_text(const BudgetBar& bar, std::int64_t full, int columns) {
  const auto column = [&](std::int64_t bytes) {
    const double part = static_cast<double>(bytes) / static_cast<double>(full);
    return std::clamp(static_cast<int>(std::lround(part * columns)), 0, columns);
  };
  std::string line(static_cast<std::size_t>(columns) + 1, ' ');
  for (const BudgetSegment& it : bar.segments) {
    std::fill(line.begin() + column(it.begin_bytes),
              line.begin() + column(it.end_bytes),
              letter_of_segment(it));
  }
  line[static_cast<std::size_t>(column(bar.device_bytes))] = '|';
  return line;
}

std::string bars_text(const Budget& budget, int width) {
  std::size_t label = 0;
  std::int64_t full = 1;
  for (std::size_t row = 0; row < budget.rows().size(); ++row) {
    label = std::max(label, budget.rows()[row].words.size());
    for (const BudgetBar& bar : budget.bars(row)) {
      full = std::max({full, bar.upper_bound_bytes, bar.device_bytes});
    }
  }
  label = std::min<std::size_t>(label, static_cast<std::size_t>(width) / 3);
  const int columns = std::max(kNarrowestText / 2, width - static_cast<int>(label) - 14);
  std::string text;
  for (std::size_t row = 0; row < budget.rows().size(); ++row) {
    const std::vector<BudgetBar> bars = budget.bars(row);
    for (std::size_t i = 0; i < bars.size(); ++i) {
      std::string line =
          fmt::format("{:<{}} rank {:>4} |{}",
                      i == 0 ? cut_text(budget.rows()[row].words, static_cast<int>(label)) : "",
                      label,
                      bars[i].rank,
                      bar_text(bars[i], full, columns));
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  }
  text += "the | is the device;";
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    const auto category = static_cast<Category>(i);
    text += fmt::format("  {} {}", letter_of(category), name_of(category));
  }
  return text + "  X outside of the plan  ? margins\n";
}

std::string formulas_text(const Budget& budget, std::size_t row, int width) {
  TextTable table({{"what"}, {"bytes", Align::kRight}, {"formula"}});
  const std::vector<BudgetBar> bars = budget.bars(row);
  for (const BudgetSegment& segment : bars.front().segments) {
    for (const MemoryTerm& term : segment.terms) {
      const std::string kind = segment.category ? segment.name + ": " : "";
      table.add({cut_text(kind + term.name, width / 2 - 8),
                 bytes_text(term.bytes),
                 cut_text(term.formula, width / 2 - 8)});
    }
  }
  return fmt::format(
      "\n{}, rank {}:\n{}", budget.rows()[row].words, bars.front().rank, table.text("  "));
}

}  // namespace

std::string budget_text(const Budget& budget, const TextOptions& options) {
  const int width = std::max(options.width, kNarrowestText);
  std::string text = table_text(budget) + "\n" + bars_text(budget, width);
  const auto fastest = budget.fastest();
  return fastest ? text + formulas_text(budget, *fastest, width) : text + "\nnone of them fits\n";
}

}  // namespace lockstep::view
