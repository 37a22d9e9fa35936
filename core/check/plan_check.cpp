#include "core/check/plan_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/check/plan_rules.h"
#include "core/error.h"
#include "core/plan_text.h"

namespace lockstep {

std::string_view name_of(PlanRule rule) {
  static constexpr std::string_view kNames[] = {"structure",
                                                "bounds",
                                                "sequence",
                                                "message",
                                                "deadlock",
                                                "lifetime",
                                                "unwritten",
                                                "race",
                                                "guard",
                                                "when_ready"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == kPlanRuleCount);
  return kNames[static_cast<std::size_t>(rule)];
}

void PlanProblems::add(PlanProblem problem) {
  const auto same = [&](const PlanProblem& other) {
    return other.rule == problem.rule && other.class_index == problem.class_index &&
           other.section == problem.section && other.operation == problem.operation &&
           other.message == problem.message;
  };
  if (std::any_of(list_.begin(), list_.end(), same)) {
    return;
  }
  const bool kept = wants(problem.rule);
  ++found_[static_cast<std::size_t>(problem.rule)];
  if (kept) {
    list_.push_back(std::move(problem));
  } else {
    ++left_out_;
  }
}

bool PlanProblems::wants(PlanRule rule) const {
  return list_.size() < options_.max_problems &&
         count(rule) < static_cast<std::int64_t>(options_.max_per_rule);
}

std::string PlanProblems::text() const {
  if (list_.empty()) {
    return "no problems";
  }
  std::string text;
  for (const PlanProblem& problem : list_) {
    text +=
        fmt::format("{}{}: {}", text.empty() ? "" : "\n", name_of(problem.rule), problem.message);
  }
  return left_out_ == 0 ? text : text + fmt::format("\nand {} more", left_out_);
}

bool CheckContext::launches(int section, int class_index, std::uint32_t operation) const {
  const std::vector<std::uint32_t>& list =
      never_launched[static_cast<std::size_t>(section)][static_cast<std::size_t>(class_index)];
  return list.empty() || !std::binary_search(list.begin(), list.end(), operation);
}

void CheckContext::report(PlanRule rule,
                          int section,
                          const ClassOperation& where,
                          const std::string& message) const {
  PlanProblem problem{rule, {}, where.class_index, section, where.operation};
  if (problems.wants(rule)) {
    problem.message = describe(plan, where.class_index, section, where.operation) + ": " + message;
  }
  problems.add(std::move(problem));
}

void refuse_if_too_large(std::int64_t operations) {
  if (operations > kMaxPlanOperations) {
    throw NotSupportedError(
        "plan",
        fmt::format(
            "{} operations are more than {}: reduce the micro-batches (accumulate), the "
            "layers per stage (more pipeline stages hold fewer each), or fold ranks that do "
            "the same (owner partitions and per-rank faults unfold them)",
            operations,
            kMaxPlanOperations));
  }
}

PlanProblems check_plan(const Plan& plan, const PlanCheckOptions& options) {
  refuse_if_too_large(plan.operation_count());
  PlanProblems problems(options);
  CheckContext context{plan, problems, {}, {}, {}};
  if (!check_structure(context)) {
    return problems;
  }
  find_never_launched(context);
  check_bounds(context);
  check_sequences(context);
  for (int section = 0; section < static_cast<int>(plan.sections.size()); ++section) {
    check_progress(context, section, check_messages(context, section));
  }
  check_lifetimes(context);
  check_races(context);
  return problems;
}

}  // namespace lockstep
