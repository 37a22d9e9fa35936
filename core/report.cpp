#include "core/report.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/plan_text.h"
#include "core/work_cost.h"

namespace lockstep {
namespace {

constexpr double kNanosecond = 1e-9;

Nanoseconds sum(const std::vector<Nanoseconds>& times) {
  return std::accumulate(times.begin(), times.end(), Nanoseconds{0});
}

double ratio(double dividend, double divisor) {
  return divisor > 0 ? dividend / divisor : 0;
}

/// Matrix FLOPs of one program.
struct Flops {
  double model = 0;
  double hardware = 0;
};

Flops flops_of(const Plan& plan, const Program& program) {
  Flops flops;
  for (const Operation& op : program.operations) {
    if (op.kind != OperationKind::kCompute) {
      continue;
    }
    const Shape& shape = plan.shapes[op.shape];
    const double made = work_cost(op.work, shape, op.dtype).flops;
    flops.hardware += made;
    if (op.phase == Phase::kRecompute) {
      continue;
    }
    flops.model += op.work == Work::kFlashAttentionGrad
                       ? work_cost(Work::kAttentionGrad, shape, op.dtype).flops
                       : made;
  }
  return flops;
}

class Reporter {
 public:
  Reporter(const Plan& plan, const TraceStep& step, Report& report)
      : index_(plan, step), plan_(plan), step_(step), report_(report) {}

  void run() {
    report_.section = step_.section;
    report_.iteration = step_.iteration;
    report_.devices = plan_.mesh.world_size();
    report_.step_time = step_.end - step_.begin;
    add_groups();
    for (int track = 0; track < index_.track_count(); ++track) {
      add_rank(track);
    }
    add_programs();
    add_waits();
    report_.path = critical_path(index_);
  }

 private:
  const Program& program(std::int32_t class_index) const {
    return plan_.sections[static_cast<std::size_t>(step_.section)]
        .programs[static_cast<std::size_t>(class_index)];
  }

  void add_groups() {
    for (const Communicator& communicator : plan_.communicators) {
      group_of_.push_back(group_named(group_text(plan_.mesh, communicator), communicator.control));
    }
    copies_ = group_named("copy", false);
  }

  std::int32_t group_named(const std::string& name, bool control) {
    std::vector<ReportGroup>& groups = report_.groups;
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const ReportGroup& it) {
      return it.name == name && it.control == control;
    });
    const auto place = static_cast<std::int32_t>(found - groups.begin());
    if (found == groups.end()) {
      groups.push_back({name, control});
    }
    return place;
  }

  std::int32_t group_of(std::uint8_t communicator) const {
    return communicator == kNoCommunicator ? copies_ : group_of_[communicator];
  }

  void add_rank(int number) {
    const TraceTrack& track = index_.track(number);
    RankReport& rank = report_.ranks.emplace_back();
    rank.track = number;
    rank.rank = track.ranks.front();
    rank.count = static_cast<std::int32_t>(track.ranks.size());
    rank.class_index = track.class_index;
    rank.time.exposed.resize(report_.groups.size());
    rank.time.waiting.resize(report_.groups.size());
    for (const TimeSegment& segment : split_time(index_, number)) {
      add_segment(number, segment, rank.time);
    }
    LOCKSTEP_CHECK(rank.time.total() == report_.step_time, "the time split adds up to the step");
    rank.peak = peak_of_class(track.class_index);
    rank.peak_time = rank.peak.operation == kNoSpan
                         ? step_.end
                         : index_.times({number, rank.peak.operation}).started;
  }

  void add_segment(int track, const TimeSegment& segment, TimeSplit& split) {
    const Nanoseconds time = segment.end - segment.begin;
    const auto group = static_cast<std::size_t>(group_of(segment.communicator));
    switch (segment.kind) {
      case TimeKind::kCompute:
        split.compute += time;
        break;
      case TimeKind::kRecompute:
        split.recompute += time;
        break;
      case TimeKind::kExposed:
        split.exposed[group] += time;
        break;
      case TimeKind::kWaiting:
        split.waiting[group] += time;
        note_wait(track, segment);
        break;
      case TimeKind::kBubble:
        split.bubble += time;
        note_wait(track, segment);
        break;
      case TimeKind::kHost:
        split.host += time;
        break;
      case TimeKind::kIdle:
        split.idle += time;
        break;
    }
  }

  void note_wait(int track, const TimeSegment& segment) {
    if (segment.operation == kNoSpan) {
      return;
    }
    const TrackOperation last = index_.last_arrival({track, segment.operation});
    if (last.track != track) {
      auto& entry = waits_[{track, last.track, group_of(segment.communicator)}];
      entry.first += segment.end - segment.begin;
      ++entry.second;
    }
  }

  void add_waits() {
    for (const auto& [key, value] : waits_) {
      report_.waits.push_back({index_.track(std::get<0>(key)).ranks.front(),
                               index_.track(std::get<1>(key)).ranks.front(),
                               std::get<2>(key),
                               value.first,
                               value.second});
    }
    std::stable_sort(report_.waits.begin(),
                     report_.waits.end(),
                     [](const RankWait& a, const RankWait& b) { return a.time > b.time; });
  }

  const MemoryMoment& peak_of_class(std::int32_t class_index) {
    const auto found = peaks_.find(class_index);
    return found != peaks_.end()
               ? found->second
               : peaks_.emplace(class_index, highest_memory(plan_, class_index, step_.section))
                     .first->second;
  }

  /// What depends on the programs alone, weighed by how many ranks run them.
  void add_programs() {
    std::vector<std::int64_t> ranks(static_cast<std::size_t>(plan_.class_count()), 0);
    for (const RankReport& it : report_.ranks) {
      ranks[static_cast<std::size_t>(it.class_index)] += it.count;
      report_.operations += static_cast<std::int64_t>(program(it.class_index).operations.size());
    }
    for (std::int32_t index = 0; index < plan_.class_count(); ++index) {
      const auto count = static_cast<double>(ranks[static_cast<std::size_t>(index)]);
      const Flops flops = flops_of(plan_, program(index));
      report_.model_flops += count * flops.model;
      report_.hardware_flops += count * flops.hardware;
      for (const Traffic& it : traffic_of(plan_, program(index))) {
        add_traffic(it, count / report_.devices);
      }
    }
  }

  void add_traffic(const Traffic& it, double share) {
    std::vector<ReportTraffic>& all = report_.traffic;
    auto entry = std::find_if(all.begin(), all.end(), [&](const ReportTraffic& other) {
      return other.group == it.group && other.kind == it.kind && other.dtype == it.dtype &&
             other.control == it.control;
    });
    if (entry == all.end()) {
      entry = all.insert(all.end(), {it.group, it.kind, it.dtype, it.control});
    }
    entry->messages += share * static_cast<double>(it.messages);
    entry->tensor_bytes += share * static_cast<double>(it.bytes);
    entry->sent_bytes += share * it.mean_sent;
  }

  const TraceIndex index_;
  const Plan& plan_;
  const TraceStep& step_;
  Report& report_;
  std::vector<std::int32_t> group_of_;  ///< by communicator
  std::int32_t copies_ = 0;
  std::map<std::int32_t, MemoryMoment> peaks_;
  /// (track, track waited for, group) -> nanoseconds, times
  std::map<std::tuple<int, int, std::int32_t>, std::pair<Nanoseconds, std::int64_t>> waits_;
};

double mean_over_ranks(const Report& report,
                       Nanoseconds (*figure)(const TimeSplit&, std::size_t),
                       std::size_t group) {
  double seconds = 0;
  for (const RankReport& it : report.ranks) {
    seconds += kNanosecond * static_cast<double>(figure(it.time, group)) * it.count;
  }
  return ratio(seconds, report.devices);
}

}  // namespace

ReportFacts report_facts(const Scenario& scenario) {
  ReportFacts facts;
  const std::int64_t length = std::max<std::int64_t>(1, scenario.training.seq_len);
  facts.tokens_per_step = samples_per_step(scenario) * length;
  facts.peak_flops = peak_flops(scenario.cluster.device, scenario.training.precision);
  return facts;
}

Nanoseconds TimeSplit::exposed_total() const {
  return sum(exposed);
}

Nanoseconds TimeSplit::waiting_total() const {
  return sum(waiting);
}

Nanoseconds TimeSplit::total() const {
  return compute + recompute + bubble + host + idle + exposed_total() + waiting_total();
}

double Report::tokens_per_s() const {
  return stalls.empty() ? ratio(static_cast<double>(tokens), step_time_s()) : 0;
}

double Report::flops_per_device() const {
  return stalls.empty() ? ratio(model_flops, step_time_s() * devices) : 0;
}

double Report::mfu() const {
  return ratio(flops_per_device(), peak_flops);
}

double Report::hfu() const {
  return stalls.empty() ? ratio(ratio(hardware_flops, step_time_s() * devices), peak_flops) : 0;
}

double Report::bubble_fraction() const {
  const double mean = mean_over_ranks(
      *this, [](const TimeSplit& it, std::size_t) { return it.bubble; }, 0);
  return ratio(mean, step_time_s());
}

double Report::mean_exposed_s(int group) const {
  return mean_over_ranks(
      *this,
      [](const TimeSplit& it, std::size_t place) { return it.exposed[place]; },
      static_cast<std::size_t>(group));
}

double Report::mean_waiting_s(int group) const {
  return mean_over_ranks(
      *this,
      [](const TimeSplit& it, std::size_t place) { return it.waiting[place]; },
      static_cast<std::size_t>(group));
}

double Report::exposed_fraction() const {
  const double mean = mean_over_ranks(
      *this,
      [](const TimeSplit& it, std::size_t) { return it.exposed_total() + it.waiting_total(); },
      0);
  return ratio(mean, step_time_s());
}

const RankReport& Report::worst_memory() const {
  return *std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return total(a.peak.bytes) < total(b.peak.bytes);
  });
}

std::int64_t Report::straggler_total(int rank) const {
  Nanoseconds time = 0;
  for (const RankWait& it : waits) {
    time += it.for_rank == rank ? it.time : 0;
  }
  return time;
}

Report make_report(const Plan& plan, const Trace& trace, const ReportFacts& facts, int step) {
  if (trace.steps.empty()) {
    throw BadInputError("trace", "it holds no step");
  }
  const auto last = static_cast<int>(trace.steps.size()) - 1;
  LOCKSTEP_CHECK(step <= last, "step of the trace");
  Report report;
  report.source = trace.source;
  report.tokens = facts.tokens_per_step;
  report.peak_flops = facts.peak_flops;
  report.stalls = trace.stalls;
  Reporter(plan, trace.steps[static_cast<std::size_t>(step < 0 ? last : step)], report).run();
  return report;
}

}  // namespace lockstep
