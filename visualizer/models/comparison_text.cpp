#include "visualizer/models/comparison_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/report_text.h"
#include "visualizer/models/timeline_text.h"

namespace lockstep::view {
namespace {

/// "+1.70 ms", "-12 ns", "0".
std::string change_text(Nanoseconds change, bool utf8) {
  if (change == 0) {
    return "0";
  }
  return (change > 0 ? "+" : "-") + time_text(std::abs(change), utf8);
}

std::string percent_text(double a, double b) {
  return a > 0 ? fmt::format("{:+.1f} %", (b - a) / a * 100) : "-";
}

std::string head(const Comparison& it, const ComparisonTextOptions& options) {
  std::string text = fmt::format(
      "A {}: {}   B {}: {}   B - A: {} ({})\n",
      options.a_name,
      time_text(it.a_length(), options.utf8),
      options.b_name,
      time_text(it.b_length(), options.utf8),
      change_text(it.b_length() - it.a_length(), options.utf8),
      percent_text(static_cast<double>(it.a_length()), static_cast<double>(it.b_length())));
  text += it.same_plan() ? "one plan: operations are the same by number\n"
                         : "two plans: operations are matched by what they do and where\n";
  if (it.ranks_without_partner() > 0) {
    text += fmt::format("{} ranks are only in one of them\n", it.ranks_without_partner());
  }
  return text;
}

std::string sums_text(const std::string& title, const std::vector<SumDifference>& sums, bool utf8) {
  TextTable table({{title}, {"A", Align::kRight}, {"B", Align::kRight}, {"B - A", Align::kRight}});
  for (const SumDifference& sum : sums) {
    // Rounded first, so that the columns add up.
    const auto a = static_cast<Nanoseconds>(std::llround(sum.a));
    const auto b = static_cast<Nanoseconds>(std::llround(sum.b));
    table.add({sum.name, time_text(a, utf8), time_text(b, utf8), change_text(b - a, utf8)});
  }
  return table.text();
}

std::string ranks_text(std::int32_t rank, std::int32_t ranks) {
  return ranks == 1 ? std::to_string(rank) : fmt::format("{} (x{})", rank, ranks);
}

std::string differences_text(const Comparison& it, const ComparisonTextOptions& options) {
  const std::vector<OperationDifference>& all = it.differences();
  const auto differing = std::count_if(
      all.begin(), all.end(), [](const OperationDifference& d) { return d.difference() != 0; });
  if (differing == 0) {
    return fmt::format("all {} pairs of operations took the same time\n",
                       grouped(static_cast<std::int64_t>(all.size())));
  }
  TextTable table({{"rank"},
                   {"A", Align::kRight},
                   {"B", Align::kRight},
                   {"B - A", Align::kRight},
                   {"operation"}});
  const auto shown =
      static_cast<std::size_t>(std::min<std::int64_t>(differing, std::max(0, options.most)));
  for (std::size_t i = 0; i < shown; ++i) {
    table.add({ranks_text(all[i].rank, all[i].ranks),
               time_text(all[i].a, options.utf8),
               time_text(all[i].b, options.utf8),
               change_text(all[i].difference(), options.utf8),
               it.name_of(all[i])});
  }
  return table.text() + fmt::format("{} of {} pairs of operations differ\n",
                                    grouped(static_cast<std::int64_t>(differing)),
                                    grouped(static_cast<std::int64_t>(all.size())));
}

template <typename Name>
std::string lone_text(const char* side,
                      const std::vector<LoneOperation>& lone,
                      const ComparisonTextOptions& options,
                      Name name) {
  if (lone.empty()) {
    return "";
  }
  std::string text = fmt::format(
      "\nonly in {}: {} operations\n", side, grouped(static_cast<std::int64_t>(lone.size())));
  TextTable table({{"rank"}, {"time", Align::kRight}, {"operation"}});
  const auto shown = std::min(lone.size(), static_cast<std::size_t>(std::max(0, options.most)));
  // The longest of them.
  std::vector<LoneOperation> longest = lone;
  std::stable_sort(longest.begin(),
                   longest.end(),
                   [](const LoneOperation& a, const LoneOperation& b) { return a.time > b.time; });
  for (std::size_t i = 0; i < shown; ++i) {
    table.add({ranks_text(longest[i].rank, longest[i].ranks),
               time_text(longest[i].time, options.utf8),
               name(longest[i])});
  }
  return text + table.text();
}

}  // namespace

std::string comparison_text(const Comparison& comparison, const ComparisonTextOptions& options) {
  return head(comparison, options) + "\n" +
         sums_text("of a rank's step", comparison.split(), options.utf8) + "\n" +
         sums_text("operations for", comparison.families(), options.utf8) + "\n" +
         differences_text(comparison, options) +
         lone_text("A",
                   comparison.only_a(),
                   options,
                   [&](const LoneOperation& it) { return comparison.name_of_a(it); }) +
         lone_text("B", comparison.only_b(), options, [&](const LoneOperation& it) {
           return comparison.name_of_b(it);
         });
}

}  // namespace lockstep::view
