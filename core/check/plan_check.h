// Plan check: everything about a plan that can be proved without running it.
//
// The rules, each of which every interpreter relies on:
//   structure   indices and enumerators in range, operands as core/operands.h demands
//   bounds      views inside their buffers, element counts and types of messages as declared
//   sequence    the members of a group issue the same collectives in the same order
//   message     every send has its recv, once, with the same count and type
//   deadlock    all streams reach their end under rule R2 of core/plan.h
//   lifetime    buffers live when used, allocated and freed once, memory back at its start
//   unwritten   nothing reads a buffer that nothing wrote
//   race        accesses to the same memory on different streams are ordered, if one writes
//   guard       what is skipped by a flag is skipped by all that take part in it
//   when_ready  operations that never launch are asked for at the next step (kExpectIssued)
// What the numbers mean (each gradient counted once) is the value check's part.
//
// Works on classes of ranks: a program is looked at once however many ranks run it, and of each
// kind of group one instance per combination of classes.
//
//     const PlanProblems problems = check_plan(plan);
//     if (!problems.empty()) throw CheckFailedError("plan", problems.text());
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan.h"

namespace lockstep {

enum class PlanRule : std::uint8_t {
  kStructure,
  kBounds,
  kSequence,
  kMessage,
  kDeadlock,
  kLifetime,
  kUnwritten,
  kRace,
  kGuard,
  kWhenReady,
};
inline constexpr int kPlanRuleCount = 10;
std::string_view name_of(PlanRule rule);

/// One fault of a plan. Places that do not apply are -1.
struct PlanProblem {
  PlanRule rule = PlanRule::kStructure;
  std::string message;
  int class_index = -1;
  int section = -1;  ///< index into Plan::sections
  std::int64_t operation = -1;
};

struct PlanCheckOptions {
  std::size_t max_problems = 20;
  std::size_t max_per_rule = 8;  ///< so that one fault in all layers does not hide the others
};

/// The faults found, in an order that depends on the plan alone.
class PlanProblems {
 public:
  explicit PlanProblems(const PlanCheckOptions& options = {}) : options_(options) {}

  /// Keeps the problem unless it is there already or there are enough of its kind; `left_out`
  /// counts the latter.
  void add(PlanProblem problem);
  /// Whether another problem of this rule would still be kept: messages cost time.
  bool wants(PlanRule rule) const;

  bool empty() const { return list_.empty(); }
  const std::vector<PlanProblem>& list() const { return list_; }
  std::int64_t left_out() const { return left_out_; }
  std::int64_t count(PlanRule rule) const { return found_[static_cast<std::size_t>(rule)]; }
  /// One "rule: message" a line; "no problems" when there are none.
  std::string text() const;

 private:
  PlanCheckOptions options_;
  std::vector<PlanProblem> list_;
  std::array<std::int64_t, kPlanRuleCount> found_{};
  std::int64_t left_out_ = 0;
};

/// In Program::dependencies: an operation that this program never issues (a bucket waits for the
/// gradient of a parameter that the model does not use). Legal for Issue::kWhenReady only: the
/// operation never launches, nor does any later kWhenReady one of its communicator and section.
inline constexpr std::uint32_t kNeverIssued = 0xffffffffU;

/// More operations than this are refused: about 64 bytes each, so 3 GiB.
inline constexpr std::int64_t kMaxPlanOperations = 50'000'000;

/// Throws NotSupportedError when a plan has (or would have) more than kMaxPlanOperations, with the
/// number and what to reduce. The planner calls it with its estimate before it emits.
void refuse_if_too_large(std::int64_t operations);

/// All faults of the plan. Throws NotSupportedError when it is too large.
PlanProblems check_plan(const Plan& plan, const PlanCheckOptions& options = {});

}  // namespace lockstep
