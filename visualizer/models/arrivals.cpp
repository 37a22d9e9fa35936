#include "visualizer/models/arrivals.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "visualizer/models/text_parts.h"

namespace lockstep::view {
namespace {

/// Members of the meeting of `rank` at `at`, in ascending order.
std::vector<int> members_of(const TraceIndex& index, const TrackOperation& at, int rank) {
  const Operation& op = index.operation(at);
  const Mesh& mesh = index.plan().mesh;
  if (op.kind == OperationKind::kCollective) {
    return members(index.plan(), index.communicator(op), rank);
  }
  if (!is_message(op) || op.peer < 0 || op.peer >= mesh.size(Axis::kPipeline)) {
    return {};
  }
  const int peer = mesh.with(rank, Axis::kPipeline, op.peer);
  return {std::min(rank, peer), std::max(rank, peer)};
}

/// The part that a track has in the meeting.
TrackOperation part_of(const TraceIndex& index, const TrackOperation& at, std::int32_t track) {
  if (track == at.track) {
    return at;
  }
  return index.operation(at).kind == OperationKind::kCollective ? index.same_collective(at, track)
                                                                : index.partner(at);
}

}  // namespace

Arrivals::Arrivals(const TraceIndex& index, const TrackOperation& at, int rank) {
  std::map<std::int32_t, std::size_t> place;  // by track
  for (const int member : members_of(index, at, rank)) {
    const std::int32_t track = index.step().track_of_rank[static_cast<std::size_t>(member)];
    const auto [it, is_new] = place.emplace(track, list_.size());
    if (!is_new) {
      ++list_[it->second].count;
      ++members_;
      continue;
    }
    const TrackOperation part = part_of(index, at, track);
    if (part.operation == kNoSpan) {
      place.erase(it);
      continue;
    }
    const SpanTimes times = index.times(part);
    list_.push_back({part, member, 1, times.issued, times.arrived, times.started, times.ended});
    ++members_;
  }
  std::stable_sort(list_.begin(), list_.end(), [](const Arrival& a, const Arrival& b) {
    return a.arrived < b.arrived;
  });
}

Nanoseconds Arrivals::spread() const {
  return empty() ? 0 : list_.back().arrived - list_.front().arrived;
}

Nanoseconds Arrivals::waited() const {
  Nanoseconds sum = 0;
  for (const Arrival& it : list_) {
    sum += it.waited() * it.count;
  }
  return sum;
}

Nanoseconds Arrivals::last_behind() const {
  if (list_.size() < 2 || list_.back().count > 1) {
    return 0;  // another one came just as late
  }
  return list_.back().arrived - list_[list_.size() - 2].arrived;
}

std::string arrivals_text(const Arrivals& arrivals, bool utf8) {
  if (arrivals.empty()) {
    return "nobody to wait for";
  }
  if (arrivals.spread() == 0) {
    return fmt::format("all {} ranks came at the same time", arrivals.members());
  }
  const Arrival& last = arrivals.list().back();
  const std::string alike = last.count > 1 ? fmt::format(" (x {})", last.count) : "";
  return fmt::format("rank {}{} came last, {} after the first; the other {} waited {} in all",
                     last.rank,
                     alike,
                     time_text(arrivals.spread(), utf8),
                     arrivals.members() - last.count,
                     time_text(arrivals.waited() - last.waited() * last.count, utf8));
}

}  // namespace lockstep::view
