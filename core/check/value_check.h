// Value check: proves that a plan computes what one rank would compute, without any kernel.
//
// Every rank of the plan runs over symbols (value_machine.h): numbers of a prime field in which
// sums and scalings are exact and every nonlinear work is a hash. The one-rank plan of the same
// model and training says what each gradient, norm, loss and new parameter must be
// (value_reference.h). A contribution that is missing, counted twice or scaled wrongly, a partial
// sum that was not summed, a stale copy: each gives another number, except with a probability of
// about 2^-60.
//
//   Checked at every optimizer operation: each element's gradient is the mean over all
//   data-parallel coordinates and micro-batches, once, unscaled, clipped by the coefficient of the
//   global norm. After every step: all copies of all parameters on all ranks are the next version,
//   and each logical element is owned. What the host reads: mean loss, token count, norm. Overflow
//   flags have seen every gradient before they guard a step. Batch norm statistics, the checkpoint,
//   the loss of the evaluate section. Nothing reads uninitialised memory; no rank waits forever.
//
// Communication that changes nothing is not wrong, but is listed (`idle`).
//
//     const ValueFacts facts = value_facts(plan);
//     ValueReference reference(one_rank_plan, facts.setting);
//     const ValueReport report = value_check(plan, reference, facts);
//     if (!report.ok()) throw CheckFailedError("plan", report.text());
//
// For unfolded plans of some ten ranks; programs shared by thousands of ranks are checked on a
// small mesh that has the same classes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/check/value_reference.h"
#include "core/plan.h"

namespace lockstep {

/// What a plan sets out to do, taken from the plan as the planner made it. A mutant of the plan is
/// checked against the facts of the original: without a broadcast nobody would know that replicas
/// were meant to be made equal.
struct ValueFacts {
  ValueSetting setting;
  /// By parameter and rank: the first values that survive initialisation. Empty inner vectors: all.
  std::vector<std::vector<std::uint8_t>> first_values;
  /// The same for statistics, by buffer.
  std::vector<std::vector<std::uint8_t>> first_statistics;
  /// By micro-batch: replicas begin it with the statistics of data-parallel coordinate 0.
  std::vector<std::uint8_t> shares_statistics;
};
ValueFacts value_facts(const Plan& plan);

struct ValueCheckOptions {
  int iterations = 0;     ///< 0: every step variant, and the last one twice
  int max_problems = 20;  ///< mutation tests need one
  bool evaluate = true;   ///< also the evaluate and save sections
  bool explain = true;    ///< on a problem, run again to find where results begin to differ
};

/// One thing that is wrong, with its place.
struct ValueProblem {
  int rank = -1;
  int iteration = -1;
  int section = -1;  ///< index into Plan::sections
  std::int64_t operation = -1;
  std::string message;  ///< with the place in words
};

/// An operation that never changed anything that it wrote.
struct IdleOperation {
  int section = 0;
  int class_index = 0;
  std::uint32_t operation = 0;
  bool operator==(const IdleOperation&) const = default;
};

struct ValueReport {
  std::vector<ValueProblem> problems;
  /// The first operation whose result the one-rank plan does not have; empty if none was found.
  std::string first_difference;
  std::vector<IdleOperation> idle;  ///< collectives, receives, scale, add, pack and the like
  std::int64_t operations = 0;      ///< executed, all ranks and iterations
  std::int64_t gradients = 0;       ///< stretches of gradient compared
  bool ok() const { return problems.empty(); }
  /// One problem a line; "values agree" when there are none.
  std::string text() const;
};

ValueReport value_check(const Plan& plan,
                        ValueReference& reference,
                        const ValueFacts& facts,
                        const ValueCheckOptions& options = {});
/// The same with facts of the plan itself and a reference of its own.
ValueReport value_check(const Plan& plan,
                        const Plan& one_rank_plan,
                        const ValueCheckOptions& options = {});

}  // namespace lockstep
