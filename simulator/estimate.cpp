#include "simulator/estimate.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

namespace lockstep::sim {
namespace {

bool is_forward(Phase phase) {
  return phase == Phase::kForward || phase == Phase::kEvaluate;
}

bool is_backward(Phase phase) {
  return phase == Phase::kBackward || phase == Phase::kBackwardInput ||
         phase == Phase::kBackwardWeight || phase == Phase::kRecompute || phase == Phase::kReduce;
}

/// Messages of one kind of place: how long all take, and whether every micro-batch has them.
struct Messages {
  double seconds = 0;
  double longest = 0;  ///< of one
  double slowed = 1;   ///< speed of compute beside them
  std::int64_t count = 0;
  std::int64_t common = 0;  ///< greatest common divisor of the counts
  void add(double each, std::int64_t times, double speed) {
    seconds += each * static_cast<double>(times);
    longest = std::max(longest, each);
    slowed = std::min(slowed, speed);
    count += times;
    common = std::gcd(common, times);
  }
  /// Passes over which they are spread: every micro-batch, or the last alone.
  double passes(std::int32_t microbatches) const {
    return microbatches > 0 && common % microbatches == 0 ? microbatches : 1;
  }
};

/// What is seen of messages beside `compute` seconds of all micro-batches: the first or last of
/// each pass, and what does not fit; what is hidden slows the compute that hides it.
double exposed(const Messages& messages, double compute, std::int32_t microbatches) {
  if (messages.count == 0) {
    return 0;
  }
  const double passes = messages.passes(microbatches);
  const double window = compute / microbatches;
  const double each = messages.seconds / passes;
  const double edge = each / static_cast<double>(messages.count) * passes;
  const double hidden = std::min(each - edge, window);
  const double lost = hidden * (1 - messages.slowed);
  return passes * (each - hidden + lost);
}

}  // namespace

/// Sums over one class's operations.
struct Estimator::ClassTimes {
  double forward = 0;   ///< compute
  double backward = 0;  ///< compute, recomputation included
  double weight = 0;    ///< of which weight gradients
  double tensor_forward = 0;
  double tensor_backward = 0;
  std::array<Messages, 2> data_forward;   ///< shards, replicas: streams of their own
  std::array<Messages, 2> data_backward;  ///< the same
  double tail = 0;
  double message = 0;  ///< the longest send
  std::int64_t launches = 0;

  void add_compute(const OperationCount& count, double seconds) {
    const bool side = count.stream != Stream::kCompute;
    if (is_forward(count.phase)) {
      forward += side ? 0 : seconds;
    } else if (is_backward(count.phase)) {
      backward += side ? 0 : seconds;
      weight += count.work == Work::kMatmulGradWeight ? seconds : 0;
    } else {
      tail += seconds;
    }
  }

  void add_collective(const OperationCount& count, double each, double speed) {
    const double seconds = each * static_cast<double>(count.count);
    const std::size_t replica = count.stream == Stream::kDataReplica ? 1 : 0;
    if (!is_forward(count.phase) && !is_backward(count.phase)) {
      tail += seconds;
    } else if (count.stream == Stream::kTensor) {
      (is_forward(count.phase) ? tensor_forward : tensor_backward) += seconds;
    } else {
      (is_forward(count.phase) ? data_forward : data_backward)[replica].add(
          each, count.count, speed);
    }
  }

  double longest_exposed(const std::array<Messages, 2>& streams,
                         double window,
                         std::int32_t microbatches) const {
    return std::max(exposed(streams[0], window, microbatches),
                    exposed(streams[1], window, microbatches));
  }
};

/// Where the groups of a class lie, found when first asked for.
class Estimator::Groups {
 public:
  Groups(const PlanSummary& summary, const ClusterSpec& cluster, std::size_t index)
      : summary_(summary), cluster_(cluster), placements_(summary.communicators.size()) {
    while (summary.mesh.index(summary.class_axes, rank_) != static_cast<int>(index)) {
      ++rank_;
    }
  }

  const GroupPlacement& placement(const OperationCount& count) {
    std::optional<GroupPlacement>& known = placements_[count.communicator];
    if (!known) {
      known = placement_of(
          cluster_,
          count.kind == OperationKind::kCollective
              ? members(summary_.mesh, summary_.communicators[count.communicator], rank_)
              : neighbours());
    }
    return *known;
  }

 private:
  /// This rank and that of the next stage.
  std::vector<int> neighbours() const {
    const int stages = summary_.mesh.size(Axis::kPipeline);
    const int stage = summary_.mesh.coordinate(rank_, Axis::kPipeline);
    const int next = summary_.mesh.with(rank_, Axis::kPipeline, (stage + 1) % stages);
    return {std::min(rank_, next), std::max(rank_, next)};
  }

  const PlanSummary& summary_;
  const ClusterSpec& cluster_;
  std::vector<std::optional<GroupPlacement>> placements_;
  int rank_ = 0;
};

Estimator::ClassTimes Estimator::times_of(const PlanSummary& summary, std::size_t index) const {
  ClassTimes times;
  Groups groups(summary, cluster_, index);
  for (const OperationCount& count : summary.classes[index].counts) {
    if (count.kind == OperationKind::kHost) {
      continue;
    }
    times.launches += count.count;
    const PriceKey key{count.kind,
                       count.work,
                       count.collective,
                       count.dtype,
                       summary.shapes[count.shape],
                       count.elements};
    if (count.communicator == kNoCommunicator) {
      times.add_compute(count, costs_.seconds(key) * static_cast<double>(count.count));
      continue;
    }
    const GroupPlacement& placement = groups.placement(count);
    const double each = costs_.seconds(key, placement);
    if (count.kind == OperationKind::kCollective) {
      times.add_collective(count, each, costs_.compute_speed_beside(placement));
    } else {
      times.message = std::max(times.message, each);
    }
  }
  return times;
}

Estimate Estimator::estimate(const PlanSummary& summary) const {
  const std::int32_t microbatches = summary.microbatches;
  Estimate result;
  double mean = 0;
  const auto classes = static_cast<double>(summary.classes.size());
  double host = 0;
  ClassTimes times;
  for (std::size_t index = 0; index < summary.classes.size(); ++index) {
    // Most stages between the first and the last do the same, and their groups lie alike.
    if (index < 2 || index + 1 == summary.classes.size() ||
        summary.classes[index].counts != summary.classes[index - 1].counts) {
      times = times_of(summary, index);
    }
    Estimate each;
    each.compute_s = times.forward + times.backward;
    // Of backward's communication, what is ready before a weight gradient hides behind it.
    const double hidden = std::min(times.tensor_backward / 2, times.weight);
    each.tensor_s = times.tensor_forward + times.tensor_backward - hidden;
    // It also hides behind the exposed messages of the tensor stream, which use other links.
    each.data_s =
        times.longest_exposed(
            times.data_forward, times.forward + times.tensor_forward, microbatches) +
        times.longest_exposed(
            times.data_backward, times.backward + times.tensor_backward - hidden, microbatches);
    each.tail_s = times.tail;
    const double body = each.compute_s + each.tensor_s;
    mean += body / classes;
    each.pipeline_s = times.message * 2 * (summary.mesh.size(Axis::kPipeline) - 1);
    each.step_s = body + each.data_s + each.tail_s + each.pipeline_s;
    host = std::max(host, static_cast<double>(times.launches) * cluster_.device.launch_overhead_s);
    if (each.step_s > result.step_s) {
      result = each;
    }
  }
  const double bubble = (summary.pipeline_stretch - 1) * mean;
  result.pipeline_s += bubble;
  result.step_s += bubble;
  result.host_s = std::max(0.0, host - result.step_s);
  result.step_s += result.host_s;
  return result;
}

}  // namespace lockstep::sim
