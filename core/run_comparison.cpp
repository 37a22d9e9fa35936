#include "core/run_comparison.h"

#include <algorithm>

#include "core/error.h"
#include "core/plan_text.h"
#include "core/queues.h"
#include "core/trace_index.h"

namespace lockstep {
namespace {

bool communicates(const Operation& op) {
  return op.communicator != kNoCommunicator;
}

const char* family_of(Work work) {
  switch (work) {
    case Work::kMatmul:
    case Work::kMatmulGradInput:
    case Work::kMatmulGradWeight:
      return "products";
    case Work::kAttention:
    case Work::kAttentionGrad:
    case Work::kFlashAttention:
    case Work::kFlashAttentionGrad:
      return "attention";
    case Work::kNorm:
    case Work::kNormGrad:
    case Work::kBnSums:
    case Work::kBnApply:
    case Work::kBnGradSums:
    case Work::kBnGradApply:
      return "norm";
    case Work::kGelu:
    case Work::kGeluGrad:
    case Work::kRelu:
    case Work::kReluGrad:
    case Work::kSwiGlu:
    case Work::kSwiGluGrad:
      return "activation";
    case Work::kDropout:
    case Work::kDropoutGrad:
      return "dropout";
    case Work::kLossLocalMax:
    case Work::kLossLocalSums:
    case Work::kLossFinish:
      return "loss";
    case Work::kSgd:
    case Work::kMomentum:
    case Work::kAdamW:
    case Work::kAdamW8bit:
      return "optimizer";
    case Work::kEmbedding:
    case Work::kEmbeddingGrad:
    case Work::kPosition:
    case Work::kPositionGrad:
      return "embedding";
    default:
      return "copies and sums";
  }
}

double seconds_of(const Span& span) {
  return static_cast<double>(span.ended - span.started) * 1e-9;
}

double length_of(const TraceStep& step) {
  return static_cast<double>(step.end - step.begin) * 1e-9;
}

/// The lower of the two in the middle of an even number.
template <typename Value>
double median_over(std::span<const TraceStep> steps, const Value& value) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (const TraceStep& step : steps) {
    values.push_back(value(step));
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void check_steps(const Plan& plan,
                 const TraceStep& predicted,
                 std::span<const TraceStep> measured) {
  check_trace(plan, predicted);
  if (measured.empty()) {
    throw BadInputError("comparison", "no measured step");
  }
  for (const TraceStep& step : measured) {
    check_trace(plan, step);
    if (step.section != predicted.section) {
      throw BadInputError("comparison", "the steps ran different sections of the plan");
    }
  }
}

void add_to(std::vector<TimesSum>& sums, const TimesSum& one) {
  auto found = std::find_if(
      sums.begin(), sums.end(), [&](const TimesSum& sum) { return sum.name == one.name; });
  if (found == sums.end()) {
    found = sums.insert(sums.end(), TimesSum{one.name, one.communication, 0, 0, 0});
  }
  found->operations += one.operations;
  found->predicted_s += one.predicted_s;
  found->measured_s += one.measured_s;
}

/// Longest first.
void finish(std::vector<TimesSum>& sums, double ranks) {
  for (TimesSum& sum : sums) {
    sum.operations /= ranks;
    sum.predicted_s /= ranks;
    sum.measured_s /= ranks;
  }
  std::stable_sort(sums.begin(), sums.end(), [](const TimesSum& a, const TimesSum& b) {
    return a.measured_s > b.measured_s;
  });
}

}  // namespace

double relative_error(double predicted, double measured) {
  return measured > 0 ? (predicted - measured) / measured : 0;
}

double RunComparison::error() const {
  return relative_error(predicted_s, measured_s);
}

std::string kind_of(const Operation& op) {
  switch (op.kind) {
    case OperationKind::kCompute:
    case OperationKind::kHost:
      return std::string(name_of(op.work));
    case OperationKind::kCollective:
      return std::string(name_of(op.collective));
    default:
      return std::string(name_of(op.kind));
  }
}

std::string family_of(const Plan& plan, const Operation& op) {
  if (communicates(op)) {
    const Communicator& communicator = plan.communicators[op.communicator];
    return communicator.control ? "control"
                                : group_text(plan.mesh, communicator) + " " + kind_of(op);
  }
  return op.kind == OperationKind::kHost ? "host" : family_of(op.work);
}

RunComparison compare_run(const Plan& plan,
                          const TraceStep& predicted,
                          std::span<const TraceStep> measured) {
  check_steps(plan, predicted, measured);
  RunComparison result;
  result.predicted_s = length_of(predicted);
  result.measured_s = median_over(measured, length_of);
  const Section& section = plan.sections[static_cast<std::size_t>(predicted.section)];
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    const Program& program = section.programs[static_cast<std::size_t>(plan.class_of_rank(rank))];
    const std::vector<Span>& spans = predicted.track(rank).spans;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const auto was_skipped = [&](const TraceStep& step) {
        return step.track(rank).spans[i].state != SpanState::kDone;
      };
      if (was_skipped(predicted) || std::any_of(measured.begin(), measured.end(), was_skipped)) {
        continue;
      }
      const Operation& op = program.operations[spans[i].operation];
      const auto seconds = [&](const TraceStep& step) {
        return seconds_of(step.track(rank).spans[i]);
      };
      OperationTimes times{rank,
                           spans[i].operation,
                           kind_of(op),
                           seconds(predicted),
                           median_over(measured, seconds)};
      const TimesSum one{times.kind, communicates(op), 1, times.predicted_s, times.measured_s};
      add_to(result.kinds, one);
      add_to(result.families,
             {family_of(plan, op), one.communication, 1, one.predicted_s, one.measured_s});
      result.operations.push_back(std::move(times));
    }
  }
  const auto ranks = static_cast<double>(plan.mesh.world_size());
  finish(result.families, ranks);
  finish(result.kinds, ranks);
  return result;
}

}  // namespace lockstep
