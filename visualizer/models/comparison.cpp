#include "visualizer/models/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "core/model_graph.h"
#include "core/plan_fingerprint.h"
#include "core/plan_text.h"
#include "core/run_comparison.h"
#include "core/time_split.h"

namespace lockstep::view {
namespace {

/// Two schedules may cut a backward in different ways; what it computes says the work.
std::string_view phase_text(Phase phase) {
  return phase == Phase::kBackwardInput || phase == Phase::kBackwardWeight
             ? lockstep::name_of(Phase::kBackward)
             : lockstep::name_of(phase);
}

std::string text_of(const Plan& plan, const Operation& op) {
  std::string text = kind_of(op);
  if (op.communicator != kNoCommunicator) {
    text += " " + group_text(plan.mesh, plan.communicators[op.communicator]);
  }
  if (op.module != kNoModule && plan.graph != nullptr) {
    text += ", " + plan.graph->module_name(op.module);
  }
  text += fmt::format(", {}", phase_text(op.phase));
  if (op.microbatch >= 0) {
    text += fmt::format(", micro-batch {}", op.microbatch);
  }
  return text;
}

bool is_done(const TraceIndex& index, const TrackOperation& at) {
  return index.span(at).state == SpanState::kDone;
}

Nanoseconds duration(const TraceIndex& index, const TrackOperation& at) {
  const SpanTimes times = index.times(at);
  return times.ended - times.started;
}

LoneOperation lone(const TraceIndex& index,
                   std::int32_t track,
                   std::uint32_t operation,
                   std::int32_t rank,
                   std::int32_t ranks) {
  return {rank, ranks, operation, duration(index, {track, operation})};
}

/// Sums by name of both sides; in order of the keys.
template <typename Key>
using SumsByKey = std::map<Key, std::pair<double, double>>;

double& side(std::pair<double, double>& sums, bool second) {
  return second ? sums.second : sums.first;
}

using SplitKey = std::pair<TimeKind, std::string>;

void add_split(const TraceIndex& index, bool second, SumsByKey<SplitKey>& sums) {
  const auto world = static_cast<double>(index.plan().mesh.world_size());
  for (int track = 0; track < index.track_count(); ++track) {
    const auto weight = static_cast<double>(index.track(track).ranks.size()) / world;
    for (const TimeSegment& segment : split_time(index, track)) {
      std::string group;
      if (segment.kind == TimeKind::kExposed || segment.kind == TimeKind::kWaiting) {
        group =
            segment.communicator == kNoCommunicator
                ? "copy"
                : group_text(index.plan().mesh, index.plan().communicators[segment.communicator]);
      }
      side(sums[{segment.kind, group}], second) +=
          weight * static_cast<double>(segment.end - segment.begin);
    }
  }
}

void add_families(const TraceIndex& index, bool second, SumsByKey<std::string>& sums) {
  const auto world = static_cast<double>(index.plan().mesh.world_size());
  for (int track = 0; track < index.track_count(); ++track) {
    const auto weight = static_cast<double>(index.track(track).ranks.size()) / world;
    for (const std::uint32_t operation : index.program(track).operations) {
      const TrackOperation at{track, operation};
      if (is_done(index, at)) {
        side(sums[family_of(index.plan(), index.operation(at))], second) +=
            weight * static_cast<double>(duration(index, at));
      }
    }
  }
}

TimeWindow carried(const TimeWindow& window,
                   const TraceStep& from,
                   const TraceStep& to,
                   Sync sync) {
  if (sync == Sync::kSameTime) {
    return window;
  }
  const Nanoseconds from_length = from.end - from.begin;
  const double stretch =
      sync == Sync::kWholeStep && from_length > 0
          ? static_cast<double>(to.end - to.begin) / static_cast<double>(from_length)
          : 1;
  const auto moved = [&](Nanoseconds time) {
    const Nanoseconds since = time - from.begin;
    return to.begin +
           (stretch == 1
                ? since
                : static_cast<Nanoseconds>(std::llround(static_cast<double>(since) * stretch)));
  };
  return {moved(window.from), moved(window.to)};
}

}  // namespace

Comparison::Comparison(const ComparedStep& a, const ComparedStep& b)
    : a_(a),
      b_(b),
      a_index_(a.plan, a.step),
      b_index_(b.plan, b.step),
      same_plan_(a.step.section == b.step.section &&
                 (&a.plan == &b.plan || plan_fingerprint(a.plan) == plan_fingerprint(b.plan))) {
  for (const TrackPair& pair : track_pairs()) {
    if (same_plan_) {
      compare_same(pair);
    } else {
      compare_by_name(pair);
    }
  }
  std::stable_sort(differences_.begin(),
                   differences_.end(),
                   [](const OperationDifference& one, const OperationDifference& other) {
                     return std::abs(one.difference()) > std::abs(other.difference());
                   });
  add_sums();
}

/// Ranks that share their track on both sides are compared once.
std::vector<Comparison::TrackPair> Comparison::track_pairs() const {
  const int ranks = std::min(a_.plan.mesh.world_size(), b_.plan.mesh.world_size());
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> known;
  std::vector<TrackPair> pairs;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int32_t a = a_.step.track_of_rank[static_cast<std::size_t>(rank)];
    const std::int32_t b = b_.step.track_of_rank[static_cast<std::size_t>(rank)];
    const auto [found, is_new] = known.try_emplace({a, b}, pairs.size());
    if (is_new) {
      pairs.push_back({a, b, rank, 0});
    }
    ++pairs[found->second].ranks;
  }
  return pairs;
}

std::int32_t Comparison::ranks_without_partner() const {
  return std::abs(a_.plan.mesh.world_size() - b_.plan.mesh.world_size());
}

void Comparison::add_pair(const TrackPair& pair, std::uint32_t a, std::uint32_t b) {
  const bool a_done = is_done(a_index_, {pair.a, a});
  const bool b_done = is_done(b_index_, {pair.b, b});
  if (a_done && b_done) {
    differences_.push_back({pair.rank,
                            pair.ranks,
                            a,
                            b,
                            duration(a_index_, {pair.a, a}),
                            duration(b_index_, {pair.b, b})});
  } else if (a_done) {
    only_a_.push_back(lone(a_index_, pair.a, a, pair.rank, pair.ranks));
  } else if (b_done) {
    only_b_.push_back(lone(b_index_, pair.b, b, pair.rank, pair.ranks));
  }
}

void Comparison::compare_same(const TrackPair& pair) {
  for (const std::uint32_t operation : a_index_.program(pair.a).operations) {
    add_pair(pair, operation, operation);
  }
}

void Comparison::compare_by_name(const TrackPair& pair) {
  struct Found {
    std::vector<std::uint32_t> operations;
    std::size_t taken = 0;
  };
  std::unordered_map<std::string, Found> in_b;
  for (const std::uint32_t operation : b_index_.program(pair.b).operations) {
    in_b[text_of(b_.plan, b_index_.operation({pair.b, operation}))].operations.push_back(operation);
  }
  std::vector<bool> matched(b_index_.program(pair.b).program->operations.size(), false);
  for (const std::uint32_t operation : a_index_.program(pair.a).operations) {
    const auto found = in_b.find(text_of(a_.plan, a_index_.operation({pair.a, operation})));
    if (found != in_b.end() && found->second.taken < found->second.operations.size()) {
      const std::uint32_t partner = found->second.operations[found->second.taken++];
      matched[partner] = true;
      add_pair(pair, operation, partner);
    } else if (is_done(a_index_, {pair.a, operation})) {
      only_a_.push_back(lone(a_index_, pair.a, operation, pair.rank, pair.ranks));
    }
  }
  for (const std::uint32_t operation : b_index_.program(pair.b).operations) {
    if (!matched[operation] && is_done(b_index_, {pair.b, operation})) {
      only_b_.push_back(lone(b_index_, pair.b, operation, pair.rank, pair.ranks));
    }
  }
}

void Comparison::add_sums() {
  SumsByKey<SplitKey> split;
  add_split(a_index_, false, split);
  add_split(b_index_, true, split);
  for (const auto& [key, sums] : split) {
    std::string name(lockstep::name_of(key.first));
    name += key.second.empty() ? "" : " " + key.second;
    split_.push_back({std::move(name), sums.first, sums.second});
  }
  SumsByKey<std::string> families;
  add_families(a_index_, false, families);
  add_families(b_index_, true, families);
  for (const auto& [name, sums] : families) {
    families_.push_back({name, sums.first, sums.second});
  }
  std::stable_sort(
      families_.begin(), families_.end(), [](const SumDifference& one, const SumDifference& other) {
        return std::max(one.a, one.b) > std::max(other.a, other.b);
      });
}

std::string Comparison::name_of(const OperationDifference& difference) const {
  return name_of_a({difference.rank, difference.ranks, difference.a_operation, 0});
}

std::string Comparison::name_of_a(const LoneOperation& operation) const {
  const std::int32_t track = a_.step.track_of_rank[static_cast<std::size_t>(operation.rank)];
  return text_of(a_.plan, a_index_.operation({track, operation.operation}));
}

std::string Comparison::name_of_b(const LoneOperation& operation) const {
  const std::int32_t track = b_.step.track_of_rank[static_cast<std::size_t>(operation.rank)];
  return text_of(b_.plan, b_index_.operation({track, operation.operation}));
}

TimeWindow Comparison::in_b(const TimeWindow& window, Sync sync) const {
  return carried(window, a_.step, b_.step, sync);
}

TimeWindow Comparison::in_a(const TimeWindow& window, Sync sync) const {
  return carried(window, b_.step, a_.step, sync);
}

}  // namespace lockstep::view
