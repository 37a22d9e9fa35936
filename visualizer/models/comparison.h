// Comparison: two steps side by side: of one plan (simulated and measured, before and after a
// change of the machine) or of two plans (two strategies). Operations are aligned, what differs is
// listed with the largest difference first, and where the time went is summed for both.
//
//     const Comparison it({a.plan, a_step}, {b.plan, b_step});
//     for (const OperationDifference& d : it.differences()) row(it.name_of(d), d.a, d.b);
//     const TimeWindow below = it.in_b(window_of_a, Sync::kStepBegin);  // zoom both at once
//
// One plan: operations are the same by index. Two plans: by kind, group, module, phase and
// micro-batch, in order where several are equal; what has no partner is listed by itself. Rank r
// is held against rank r. Of an operation counts the time from its start (all members there) to
// its end, as in core/run_comparison.h, which judges a prediction over many measured steps.
//
// What it is not: an owner. Plans and steps must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/trace_index.h"
#include "visualizer/models/timeline.h"

namespace lockstep::view {

struct ComparedStep {
  const Plan& plan;
  const TraceStep& step;
};

struct OperationDifference {
  std::int32_t rank = 0;   ///< the first
  std::int32_t ranks = 1;  ///< that did both at the same times
  std::uint32_t a_operation = kNoSpan;
  std::uint32_t b_operation = kNoSpan;
  Nanoseconds a = 0;  ///< how long it took
  Nanoseconds b = 0;
  Nanoseconds difference() const { return b - a; }
};

/// An operation that only one of the two has.
struct LoneOperation {
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  std::uint32_t operation = kNoSpan;
  Nanoseconds time = 0;
};

/// Nanoseconds of a rank's step, as means over the ranks of each.
struct SumDifference {
  std::string name;
  double a = 0;
  double b = 0;
  double difference() const { return b - a; }
};

/// How a moment of one step is carried over to the other.
enum class Sync : std::uint8_t {
  kSameTime,   ///< the clocks as they are
  kStepBegin,  ///< both steps begin at the same place
  kWholeStep,  ///< also end there: stretched
};

class Comparison {
 public:
  /// BadInputError when a trace does not fit its plan.
  Comparison(const ComparedStep& a, const ComparedStep& b);

  const ComparedStep& a() const { return a_; }
  const ComparedStep& b() const { return b_; }
  bool same_plan() const { return same_plan_; }
  Nanoseconds a_length() const { return a_.step.end - a_.step.begin; }
  Nanoseconds b_length() const { return b_.step.end - b_.step.begin; }

  /// Every pair, those that differ most first; equal ones by rank and program order.
  const std::vector<OperationDifference>& differences() const { return differences_; }
  const std::vector<LoneOperation>& only_a() const { return only_a_; }
  const std::vector<LoneOperation>& only_b() const { return only_b_; }
  /// "matmul, h.3.mlp.up, backward, micro-batch 2".
  std::string name_of(const OperationDifference& difference) const;
  std::string name_of_a(const LoneOperation& operation) const;
  std::string name_of_b(const LoneOperation& operation) const;

  /// What the compute stream did (core/time_split.h): "compute", "exposed dp", "bubble"; each adds
  /// up to its step.
  const std::vector<SumDifference>& split() const { return split_; }
  /// What operations cost time for: "products", "dp all_reduce"; overlap counts twice.
  const std::vector<SumDifference>& families() const { return families_; }
  /// Ranks of the larger one that the other does not have.
  std::int32_t ranks_without_partner() const;

  TimeWindow in_b(const TimeWindow& window, Sync sync) const;
  TimeWindow in_a(const TimeWindow& window, Sync sync) const;

 private:
  struct TrackPair {
    std::int32_t a = 0;
    std::int32_t b = 0;
    std::int32_t rank = 0;
    std::int32_t ranks = 0;
  };
  std::vector<TrackPair> track_pairs() const;
  void compare_same(const TrackPair& pair);
  void compare_by_name(const TrackPair& pair);
  void add_pair(const TrackPair& pair, std::uint32_t a, std::uint32_t b);
  void add_sums();

  ComparedStep a_;
  ComparedStep b_;
  TraceIndex a_index_;
  TraceIndex b_index_;
  bool same_plan_ = false;
  std::vector<OperationDifference> differences_;
  std::vector<LoneOperation> only_a_;
  std::vector<LoneOperation> only_b_;
  std::vector<SumDifference> split_;
  std::vector<SumDifference> families_;
};

}  // namespace lockstep::view
