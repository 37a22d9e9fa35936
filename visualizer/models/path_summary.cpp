#include "visualizer/models/path_summary.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/plan_text.h"
#include "core/report_text.h"
#include "visualizer/models/text_parts.h"

namespace lockstep::view {

std::string PathShare::name() const {
  return group.empty() ? std::string(name_of(cause)) : fmt::format("{} {}", name_of(cause), group);
}

PathSummary::PathSummary(const TraceIndex& index, std::vector<PathSegment> path)
    : path_(std::move(path)) {
  std::vector<Nanoseconds> by_track(static_cast<std::size_t>(index.track_count()), 0);
  for (const PathSegment& it : path_) {
    const std::string group =
        it.communicator == kNoCommunicator
            ? ""
            : group_text(index.plan().mesh, index.plan().communicators[it.communicator]);
    auto share = std::find_if(shares_.begin(), shares_.end(), [&](const PathShare& other) {
      return other.cause == it.cause && other.group == group;
    });
    if (share == shares_.end()) {
      share = shares_.insert(share, {it.cause, group, 0, 0});
    }
    share->time += it.end - it.begin;
    ++share->pieces;
    by_track[static_cast<std::size_t>(it.track)] += it.end - it.begin;
  }
  std::stable_sort(shares_.begin(), shares_.end(), [](const PathShare& a, const PathShare& b) {
    return a.time > b.time;
  });
  for (std::int32_t track = 0; track < index.track_count(); ++track) {
    if (by_track[static_cast<std::size_t>(track)] > 0) {
      tracks_.push_back(track);
    }
  }
  std::stable_sort(tracks_.begin(), tracks_.end(), [&](std::int32_t a, std::int32_t b) {
    return by_track[static_cast<std::size_t>(a)] > by_track[static_cast<std::size_t>(b)];
  });
}

Nanoseconds PathSummary::total() const {
  Nanoseconds sum = 0;
  for (const PathShare& it : shares_) {
    sum += it.time;
  }
  return sum;
}

bool ran(const TraceIndex& index, const PathSegment& segment) {
  if (segment.operation == kNoSpan) {
    return false;
  }
  switch (segment.cause) {
    case PathCause::kCompute:
    case PathCause::kRecompute:
    case PathCause::kCommunication:
      return true;
    case PathCause::kHost:  // issuing, unless the operation is the host's own
      return index.operation({segment.track, segment.operation}).kind == OperationKind::kHost &&
             segment.begin >= index.times({segment.track, segment.operation}).started;
    default:
      return false;
  }
}

std::string path_text(const PathSummary& summary, bool utf8) {
  const Nanoseconds total = summary.total();
  std::string text =
      fmt::format("critical path: what the step's {} are made of\n", time_text(total, utf8));
  TextTable table(
      {{"kind"}, {"share", Align::kRight}, {"time", Align::kRight}, {"pieces", Align::kRight}});
  for (const PathShare& it : summary.shares()) {
    const double part =
        static_cast<double>(it.time) / static_cast<double>(std::max<Nanoseconds>(1, total));
    table.add({it.name(), percent_text(part), time_text(it.time, utf8), grouped(it.pieces)});
  }
  return text + table.text("  ");
}

}  // namespace lockstep::view
