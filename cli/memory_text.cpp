#include "cli/memory_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "cli/scenario_text.h"
#include "core/report_text.h"

namespace lockstep::cli {
namespace {

constexpr int kBarWidth = 40;  ///< columns that stand for the device's memory

/// Terminal colours (256) after Okabe and Ito's palette, distinct for colour-blind readers; the
/// last is for non-tensor memory.
constexpr std::array<int, kCategoryCount + 1> kColours = {
    32, 75, 166, 214, 36, 220, 175, 250, 245, 240};

struct Line {
  std::string_view name;
  std::int64_t bytes = 0;
  int colour = 0;
};

std::vector<Line> lines_of(const RankMemory& it) {
  std::vector<Line> lines;
  for (int i = 0; i < kCategoryCount; ++i) {
    const auto index = static_cast<std::size_t>(i);
    lines.push_back({name_of(static_cast<Category>(i)), it.bytes[index], kColours[index]});
  }
  lines.push_back({"non_tensor", it.non_tensor_bytes(), kColours.back()});
  return lines;
}

/// A bar in eighths of a column, or in whole ones without UTF-8. What is not zero shows.
std::string bar(std::int64_t bytes, std::int64_t scale, const Terminal& terminal) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double columns = kBarWidth * static_cast<double>(bytes) /
                         static_cast<double>(std::max<std::int64_t>(scale, 1));
  if (!terminal.utf8) {
    const double whole = bytes > 0 ? std::max(1.0, std::round(columns)) : 0;
    return std::string(static_cast<std::size_t>(whole), '#');
  }
  const auto eighths = static_cast<int>(std::ceil(columns * 8));
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) {
    text += "█";
  }
  return text + kEighths[eighths % 8];
}

std::string coloured(const std::string& text, int colour, const Terminal& terminal) {
  return terminal.colour && !text.empty() ? fmt::format("\033[38;5;{}m{}\033[0m", colour, text)
                                          : text;
}

std::string share(std::int64_t bytes, std::int64_t of) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(bytes) / static_cast<double>(of));
}

std::string rank_text(const RankMemory& it) {
  return it.count == 1 ? fmt::format("rank {}", it.rank)
                       : fmt::format("rank {} and {} more like it", it.rank, it.count - 1);
}

std::string verdict(const RankMemory& it, std::int64_t device) {
  if (it.peak_bytes() > device) {
    return fmt::format("does not fit: {} too much", bytes_text(it.peak_bytes() - device));
  }
  if (it.upper_bound_bytes() > device) {
    return fmt::format("fits by the estimate with {} to spare; the upper bound is {} too much",
                       bytes_text(device - it.peak_bytes()),
                       bytes_text(it.upper_bound_bytes() - device));
  }
  return fmt::format("fits: {} to spare, {} by the upper bound",
                     bytes_text(device - it.peak_bytes()),
                     bytes_text(device - it.upper_bound_bytes()));
}

std::string categories_text(const RankMemory& it, std::int64_t device, const Terminal& terminal) {
  const std::int64_t scale = std::max(device, it.peak_bytes());
  std::string text;
  for (const Line& line : lines_of(it)) {
    text += fmt::format("  {:<20}{:>12}  {:>7}  {}",
                        line.name,
                        bytes_text(line.bytes),
                        share(line.bytes, std::max<std::int64_t>(it.peak_bytes(), 1)),
                        coloured(bar(line.bytes, scale, terminal), line.colour, terminal));
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

/// Where the peak stands: in the step that repeats the section needs no word.
std::string peak_place(const RankMemory& it) {
  return it.peak_section.rfind("step", 0) == 0 ? it.peak_text
                                               : it.peak_section + ", " + it.peak_text;
}

std::string margins_text(const RankMemory& it) {
  std::string text;
  for (const MemoryTerm& term : it.margins) {
    text += fmt::format("    + {:>10}  {}\n", bytes_text(term.bytes), term.name);
  }
  return text;
}

std::string others_text(const MemoryReport& report) {
  if (report.ranks.size() < 2) {
    return "";
  }
  TextTable table({{"rank", Align::kRight},
                   {"ranks", Align::kRight},
                   {"peak", Align::kRight},
                   {"upper bound", Align::kRight},
                   {"fits"},
                   {"operation at the peak"}});
  for (const RankMemory& it : report.ranks) {
    table.add({std::to_string(it.rank),
               std::to_string(it.count),
               bytes_text(it.peak_bytes()),
               bytes_text(it.upper_bound_bytes()),
               it.peak_bytes() > report.device_bytes          ? "no"
               : it.upper_bound_bytes() > report.device_bytes ? "tight"
                                                              : "yes",
               peak_place(it)});
  }
  return "\n" + table.text("  ");
}

/// One term: its bytes, the formula that gives them, what they are.
std::string term_text(const MemoryTerm& term) {
  return fmt::format("    {:>15} = {}: {}\n", grouped(term.bytes), term.formula, term.name);
}

std::string origin(const MemoryTerm& term) {
  return fmt::format("[{}: {}]", name_of(term.basis), term.source);
}

/// Terms of a category share their source. A plan that was only counted has no terms.
std::string explain_category(const RankMemory& it, Category category) {
  const std::int64_t bytes = it.bytes[static_cast<std::size_t>(category)];
  std::string text =
      fmt::format("  {}: {} B = {}", name_of(category), grouped(bytes), bytes_text(bytes));
  std::string terms;
  for (const LedgerRow& row : it.rows) {
    if (row.category == category) {
      text += terms.empty() ? "  " + origin(row.term) : "";
      terms += term_text(row.term);
    }
  }
  return text + (terms.empty() ? "  (counted)\n" : "\n" + terms);
}

std::string explain_terms(const char* title,
                          std::int64_t bytes,
                          const std::vector<MemoryTerm>& terms) {
  std::string text = fmt::format("  {}: {} B = {}\n", title, grouped(bytes), bytes_text(bytes));
  for (const MemoryTerm& term : terms) {
    text += term_text(term);
    text += fmt::format("    {:>15}   {}\n", "", origin(term));
  }
  return text;
}

std::string explain_text(const RankMemory& it) {
  std::string text = fmt::format("\nrank {}, term by term\n", it.rank);
  for (int i = 0; i < kCategoryCount; ++i) {
    if (it.bytes[static_cast<std::size_t>(i)] > 0) {
      text += explain_category(it, static_cast<Category>(i));
    }
  }
  text += explain_terms("non_tensor", it.non_tensor_bytes(), it.non_tensor);
  return text + explain_terms("upper bound beyond the peak",
                              it.upper_bound_bytes() - it.peak_bytes(),
                              it.margins);
}

std::string changes_text(const std::vector<MemoryChange>& changes) {
  TextTable table({{"add to the command"}, {"peak", Align::kRight}, {"fits"}, {"costs"}});
  for (const MemoryChange& it : changes) {
    table.add({it.flags, bytes_text(it.peak_bytes), it.fits ? "yes" : "no", it.cost});
  }
  return table.text("  ");
}

std::string advice_text(const MemoryAdvice& advice, bool fits) {
  if (advice.single.empty()) {
    return "\nno single change lowers the peak\n";
  }
  std::string text;
  const bool enough = advice.single.front().fits;
  text += fits     ? "\nto use less\n"
          : enough ? "\none of these makes it fit, cheapest first\n"
                   : "\nno single change is enough; these come closest\n";
  text += changes_text(advice.single);
  if (!advice.together.empty()) {
    text += "\ntogether these make it fit; the peak is that after each\n";
    text += changes_text(advice.together);
  }
  return text;
}

}  // namespace

std::string memory_text(const MemoryView& view, const Terminal& terminal) {
  const MemoryReport& report = view.report;
  const RankMemory& worst = report.worst();
  std::string text = scenario_line(view.scenario) + "\n";
  text += fmt::format("{} parameters; {} per device\n\n",
                      grouped(report.parameters),
                      bytes_text(report.device_bytes));
  text += rank_text(worst) + (report.ranks.size() > 1 ? ", which hold most\n" : "\n");
  text += categories_text(worst, report.device_bytes, terminal);
  text += fmt::format(
      "  {:<20}{:>12}  at {}\n", "peak", bytes_text(worst.peak_bytes()), peak_place(worst));
  text +=
      fmt::format("  {:<20}{:>12}  = peak\n", "upper bound", bytes_text(worst.upper_bound_bytes()));
  text += margins_text(worst);
  text += "  " + verdict(worst, report.device_bytes) + "\n";
  if (report.counted) {
    text += "  (the plan is too large to walk: the steady step was counted)\n";
  }
  text += others_text(report);
  if (view.explain) {
    for (const RankMemory& it : report.ranks) {
      text += explain_text(it);
    }
  }
  if (view.advice != nullptr) {
    text += advice_text(*view.advice, report.fits());
  }
  return text;
}

}  // namespace lockstep::cli
