#include "core/critical_path.h"

#include <algorithm>

namespace lockstep {
namespace {

PathCause cause_of(const Operation& op) {
  switch (op.kind) {
    case OperationKind::kCollective:
    case OperationKind::kSend:
    case OperationKind::kRecv:
      return PathCause::kCommunication;
    case OperationKind::kHost:
      return PathCause::kHost;
    default:
      return op.phase == Phase::kRecompute ? PathCause::kRecompute : PathCause::kCompute;
  }
}

class PathWalk {
 public:
  explicit PathWalk(const TraceIndex& index) : index_(index), cursor_(index.step().end) {
    for (const TraceTrack& track : index.step().tracks) {
      spans_ += track.spans.size();
    }
  }

  std::vector<PathSegment> run() {
    TrackOperation at = last_of_all();
    // In a recorded trace, whose clocks may disagree, a walk through ranks could go in circles.
    for (std::size_t steps = 0; at.operation != kNoSpan && steps <= 2 * spans_; ++steps) {
      at = pass(at);
    }
    take(index_.step().begin, PathCause::kUnexplained, {at.track < 0 ? 0 : at.track, kNoSpan});
    std::reverse(path_.begin(), path_.end());
    return std::move(path_);
  }

 private:
  TrackOperation last_of_all() const {
    TrackOperation last;
    Nanoseconds latest = 0;
    for (int track = 0; track < index_.track_count(); ++track) {
      const TrackOperation at{track, index_.last_operation(track)};
      if (at.operation != kNoSpan &&
          (last.operation == kNoSpan || index_.times(at).ended > latest)) {
        last = at;
        latest = index_.times(at).ended;
      }
    }
    return last;
  }

  /// Takes the operation and what held it up; returns what that was.
  TrackOperation pass(const TrackOperation& at) {
    const SpanTimes times = index_.times(at);
    take(times.ended, PathCause::kUnexplained, at);
    take(times.started, cause_of(index_.operation(at)), at);
    const TrackOperation late = index_.last_arrival(at);
    take(index_.times(late).arrived, PathCause::kUnexplained, late);
    const Binding binding = index_.binding(late);
    take(binding.time, PathCause::kUnexplained, late);
    if (binding.kind != Binding::Kind::kHost) {
      return {late.track, binding.operation};
    }
    const std::uint32_t sync = index_.sync_before(late);
    take(sync == kNoSpan ? index_.step().begin : index_.times({late.track, sync}).ended,
         PathCause::kHost,
         late);
    return {late.track, sync};
  }

  void take(Nanoseconds begin, PathCause cause, const TrackOperation& at) {
    const Nanoseconds start = std::max(begin, index_.step().begin);
    if (start >= cursor_) {
      return;
    }
    const std::uint8_t communicator =
        cause == PathCause::kCommunication ? index_.operation(at).communicator : kNoCommunicator;
    path_.push_back({at.track, at.operation, start, cursor_, cause, communicator});
    cursor_ = start;
  }

  const TraceIndex& index_;
  Nanoseconds cursor_;
  std::size_t spans_ = 0;
  std::vector<PathSegment> path_;  ///< latest first
};

}  // namespace

std::string_view name_of(PathCause cause) {
  static constexpr std::string_view kNames[] = {
      "compute", "recompute", "communication", "host", "unexplained"};
  return kNames[static_cast<std::size_t>(cause)];
}

std::vector<PathSegment> critical_path(const TraceIndex& index) {
  return PathWalk(index).run();
}

}  // namespace lockstep
