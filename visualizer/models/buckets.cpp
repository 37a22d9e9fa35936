#include "visualizer/models/buckets.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/model_graph.h"
#include "core/plan_text.h"
#include "core/time_split.h"
#include "core/traffic.h"
#include "visualizer/models/gradient_flow.h"
#include "visualizer/models/plan_names.h"

namespace lockstep::view {
namespace {

std::string why_no_reductions(const Plan& plan) {
  if (plan.host_shared) {
    return "one process drives all devices: gradients are summed on device 0 after backward, all "
           "at once";
  }
  if (plan.mesh.size(Axis::kAllData) == 1) {
    return "one data-parallel rank: there is nobody to reduce gradients with";
  }
  return "this section reduces no gradients over data-parallel ranks";
}

/// Of [begin, end), how much lies in the intervals, which are in order and apart.
Nanoseconds covered(const std::vector<TimeWindow>& intervals, Nanoseconds begin, Nanoseconds end) {
  auto at = std::upper_bound(
      intervals.begin(), intervals.end(), begin, [](Nanoseconds time, const TimeWindow& it) {
        return time < it.to;
      });
  Nanoseconds sum = 0;
  for (; at != intervals.end() && at->from < end; ++at) {
    sum += std::min(at->to, end) - std::max(at->from, begin);
  }
  return sum;
}

/// Limits are those of the step that repeats.
bool is_steady(const TraceIndex& index) {
  const Plan& plan = index.plan();
  const Section& here = plan.sections[static_cast<std::size_t>(index.step().section)];
  return here.kind == SectionKind::kStep && !plan.variant_of_iteration.empty() &&
         here.variant == plan.variant_of_iteration.back();
}

}  // namespace

std::string_view name_of(BucketPhase phase) {
  static constexpr std::string_view kNames[] = {"empty", "filling", "ready", "in flight", "done"};
  return kNames[static_cast<std::size_t>(phase)];
}

Buckets::Buckets(const TraceIndex& index, int rank, const DataStrategy* data)
    : rank_(rank), whole_{index.step().begin, index.step().end} {
  const std::int32_t track = track_of(index, rank);
  const int class_index = index.track(track).class_index;
  if (gathers_parameters(index.plan(), class_index, *index.program(track).program)) {
    why_empty_ =
        "parameters are cut over ranks: gradients are reduced unit by unit, not in buckets";
    return;
  }
  add_launches(index, track);
  if (launches_.empty()) {
    why_empty_ = why_no_reductions(index.plan());
    return;
  }
  add_times(index, track);
  sum_up(index, track);
  if (data != nullptr && is_steady(index)) {
    const Operation& op = index.operation({track, launches_.front().operation});
    const std::int32_t shards = index.plan().mesh.size(Axis::kData);
    if (const auto caps = bucket_caps(*data, size_of(op.dtype), shards)) {
      for (std::size_t i = 0; i < buckets_.size(); ++i) {
        buckets_[i].cap_bytes = i == 0 ? caps->first_bytes : caps->rest_bytes;
      }
    }
  }
}

/// Buckets are told apart by what is in them: buffers are lent again and again.
void Buckets::add_launches(const TraceIndex& index, std::int32_t track) {
  const Plan& plan = index.plan();
  const Program& program = *index.program(track).program;
  const std::vector<GradientReduction> reductions =
      gradient_reductions(plan, index.track(track).class_index, program);
  std::map<std::int32_t, ReducedGradient> by_parameter;
  for (const GradientReduction& reduction : reductions) {
    for (const ReducedGradient& gradient : reduction.gradients) {
      by_parameter.emplace(gradient.parameter, gradient);
    }
  }
  std::map<std::int32_t, std::int32_t> place_of;
  for (const auto& [parameter, gradient] : by_parameter) {
    place_of[parameter] = static_cast<std::int32_t>(parameters_.size());
    parameters_.push_back(
        {parameter, plan.graph->parameter_name(parameter), gradient.elements, 0, 0});
  }
  std::map<std::vector<std::int32_t>, std::int32_t> known;
  for (const GradientReduction& reduction : reductions) {
    const Operation& op = program.operations[reduction.operation];
    std::vector<std::int32_t> members;
    BucketLaunch& launch = launches_.emplace_back();
    launch.operation = reduction.operation;
    launch.microbatch = op.microbatch;
    for (const ReducedGradient& gradient : reduction.gradients) {
      const std::int32_t place = place_of[gradient.parameter];
      members.push_back(place);
      launch.drops.push_back({place,
                              gradient.written,
                              index.times({track, gradient.written}).ended,
                              index.times({track, gradient.filled}).ended});
      parameters_[static_cast<std::size_t>(place)].bytes = gradient.elements * size_of(op.dtype);
    }
    const auto [at, is_new] = known.emplace(members, static_cast<std::int32_t>(buckets_.size()));
    launch.bucket = at->second;
    if (is_new) {
      Bucket& bucket = buckets_.emplace_back();
      bucket.bytes = tensor_bytes(op, group_size(plan.mesh, index.communicator(op)));
      bucket.members = std::move(members);
    }
  }
  launches_of_.resize(buckets_.size());
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    const auto bucket = static_cast<std::size_t>(launches_[i].bucket);
    launches_of_[bucket].push_back(static_cast<std::int32_t>(i));
    for (const std::int32_t member : buckets_[bucket].members) {
      parameters_[static_cast<std::size_t>(member)].bucket = launches_[i].bucket;
    }
  }
  for (Bucket& bucket : buckets_) {
    for (const std::int32_t member : bucket.members) {
      bucket.member_bytes += parameters_[static_cast<std::size_t>(member)].bytes;
    }
  }
}

void Buckets::add_times(const TraceIndex& index, std::int32_t track) {
  for (BucketLaunch& launch : launches_) {
    std::stable_sort(launch.drops.begin(),
                     launch.drops.end(),
                     [](const BucketDrop& a, const BucketDrop& b) { return a.filled < b.filled; });
    launch.first_filled = launch.drops.front().filled;
    launch.full = launch.drops.back().filled;
    const SpanTimes times = index.times({track, launch.operation});
    launch.issued = times.issued;
    launch.arrived = times.arrived;
    launch.started = times.started;
    launch.ended = times.ended;
    const TrackOperation last = index.last_arrival({track, launch.operation});
    launch.last_rank = index.track(last.track).ranks.front();
    std::vector<std::int64_t>& sums = bytes_by_drop_.emplace_back();
    std::int64_t sum = 0;
    for (const BucketDrop& drop : launch.drops) {
      sum += parameters_[static_cast<std::size_t>(drop.parameter)].bytes;
      sums.push_back(sum);
    }
  }
}

void Buckets::sum_up(const TraceIndex& index, std::int32_t track) {
  std::map<std::uint32_t, BucketLaunch*> launch_of;
  for (BucketLaunch& launch : launches_) {
    launch_of[launch.operation] = &launch;
  }
  std::vector<TimeWindow> busy;
  for (const TimeSegment& it : split_time(index, track)) {
    if (it.kind == TimeKind::kCompute || it.kind == TimeKind::kRecompute) {
      busy.push_back({it.begin, it.end});
      continue;
    }
    const auto launch = launch_of.find(it.operation);
    if (launch != launch_of.end() && it.kind == TimeKind::kExposed) {
      launch->second->exposed += it.end - it.begin;
    } else if (launch != launch_of.end() && it.kind == TimeKind::kWaiting) {
      launch->second->waiting += it.end - it.begin;
    }
  }
  const Operation& first = index.operation({track, launches_.front().operation});
  summary_.kind = kind_text(first);
  summary_.group = group_text(index.plan().mesh, index.communicator(first));
  summary_.ranks = group_size(index.plan().mesh, index.communicator(first));
  summary_.tail = {whole_.from, whole_.from};
  for (const BucketLaunch& it : launches_) {
    const Operation& op = index.operation({track, it.operation});
    const std::int64_t members = group_size(index.plan().mesh, index.communicator(op));
    ++summary_.reductions;
    summary_.tensor_bytes += lockstep::tensor_bytes(op, members);
    summary_.sent_bytes += mean_sent_bytes(op, members);
    summary_.transfer += it.ended - it.started;
    summary_.hidden += covered(busy, it.started, it.ended);
    summary_.exposed += it.exposed;
    summary_.waiting += it.waiting;
    for (const BucketDrop& drop : it.drops) {
      summary_.tail.from = std::max(summary_.tail.from, drop.ready);
    }
    summary_.tail.to = std::max(summary_.tail.to, it.ended);
  }
  summary_.tail.to = std::max(summary_.tail.to, summary_.tail.from);
}

std::vector<BucketState> Buckets::state(Nanoseconds time) const {
  std::vector<BucketState> states;
  states.reserve(buckets_.size());
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    states.push_back(state_of(bucket, time));
  }
  return states;
}

/// Of its reductions the last for which anything has come in.
BucketState Buckets::state_of(std::size_t bucket, Nanoseconds time) const {
  const std::vector<std::int32_t>& all = launches_of_[bucket];
  const auto after =
      std::upper_bound(all.begin(), all.end(), time, [&](Nanoseconds at, std::int32_t launch) {
        return at < launches_[static_cast<std::size_t>(launch)].first_filled;
      });
  BucketState state;
  state.launch = after == all.begin() ? all.front() : *(after - 1);
  if (after == all.begin()) {
    return state;
  }
  const auto at = static_cast<std::size_t>(state.launch);
  const BucketLaunch& launch = launches_[at];
  const auto come = std::upper_bound(
      launch.drops.begin(), launch.drops.end(), time, [](Nanoseconds now, const BucketDrop& it) {
        return now < it.filled;
      });
  state.filled_bytes =
      bytes_by_drop_[at][static_cast<std::size_t>(come - launch.drops.begin()) - 1];
  const std::int64_t all_bytes = bytes_by_drop_[at].back();
  state.filled =
      all_bytes == 0 ? 1 : static_cast<double>(state.filled_bytes) / static_cast<double>(all_bytes);
  state.phase = time < launch.full      ? BucketPhase::kFilling
                : time < launch.started ? BucketPhase::kReady
                : time < launch.ended   ? BucketPhase::kInFlight
                                        : BucketPhase::kDone;
  return state;
}

}  // namespace lockstep::view
