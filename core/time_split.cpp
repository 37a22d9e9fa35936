#include "core/time_split.h"

#include <algorithm>
#include <string_view>

namespace lockstep {
namespace {

bool crosses_stages(const TraceIndex& index, const Operation& op) {
  return op.kind != OperationKind::kCollective ||
         ((index.communicator(op).axes & mask_of(Axis::kPipeline)) != 0 &&
          index.plan().mesh.size(Axis::kPipeline) > 1);
}

/// Fills one gap of a track, from its end to its beginning.
class GapWalk {
 public:
  GapWalk(const TraceIndex& index, int track, Nanoseconds from, Nanoseconds to)
      : index_(index), track_(track), from_(from), cursor_(to) {}

  /// What `operation` waited for.
  void before(std::uint32_t operation) {
    std::uint32_t at = operation;
    while (cursor_ > from_ && at != kNoSpan) {
      const Binding binding = index_.binding({track_, at});
      take(binding.time, TimeKind::kIdle, kNoSpan);
      if (binding.kind == Binding::Kind::kHost) {
        const std::uint32_t sync = index_.sync_before({track_, at});
        take(sync == kNoSpan ? from_ : index_.times({track_, sync}).ended, TimeKind::kHost, at);
        at = sync;
      } else {
        at = binding.operation;
      }
      if (at != kNoSpan) {
        during(at);
      }
    }
    take(from_, TimeKind::kIdle, kNoSpan);
  }

  /// The operation itself, from its arrival on.
  void during(std::uint32_t operation) {
    const Operation& op = index_.operation({track_, operation});
    const SpanTimes times = index_.times({track_, operation});
    switch (op.kind) {
      case OperationKind::kCollective:
      case OperationKind::kSend:
      case OperationKind::kRecv:
        communicator_ = op.communicator;
        take(times.started, TimeKind::kExposed, operation);
        take(times.arrived,
             crosses_stages(index_, op) ? TimeKind::kBubble : TimeKind::kWaiting,
             operation);
        break;
      case OperationKind::kHost:
        take(times.arrived, TimeKind::kHost, operation);
        break;
      default:
        if (op.stream != Stream::kCompute) {
          find_group(operation);
          take(times.arrived, TimeKind::kExposed, operation);
        }
        break;
    }
  }

  void tail(Nanoseconds begin) {
    const bool pipeline = index_.plan().mesh.size(Axis::kPipeline) > 1;
    take(begin, pipeline ? TimeKind::kBubble : TimeKind::kIdle, kNoSpan);
  }

  /// Appends the parts of the gap in order.
  void append_to(std::vector<TimeSegment>& segments) const {
    segments.insert(segments.end(), parts_.rbegin(), parts_.rend());
  }

 private:
  void take(Nanoseconds begin, TimeKind kind, std::uint32_t operation) {
    const Nanoseconds start = std::max(begin, from_);
    if (start >= cursor_) {
      return;
    }
    const bool of_group = operation != kNoSpan && kind != TimeKind::kHost;
    parts_.push_back({start, cursor_, kind, of_group ? communicator_ : kNoCommunicator, operation});
    cursor_ = start;
  }

  /// Copies serve the communication that the walk came from, else the nearest earlier one of their
  /// queue.
  void find_group(std::uint32_t operation) {
    const ProgramIndex& program = index_.program(track_);
    for (std::uint32_t at = operation; at != kNoSpan && communicator_ == kNoCommunicator;
         at = program.previous_in_queue[at]) {
      communicator_ = program.program->operations[at].communicator;
    }
  }

  const TraceIndex& index_;
  int track_;
  Nanoseconds from_;
  Nanoseconds cursor_;
  std::uint8_t communicator_ = kNoCommunicator;
  std::vector<TimeSegment> parts_;  ///< latest first
};

/// What runs on the compute stream: nearly always a computation.
TimeSegment busy(const TraceIndex& index,
                 const TrackOperation& at,
                 Nanoseconds begin,
                 Nanoseconds end) {
  const Operation& op = index.operation(at);
  const bool computes = op.kind == OperationKind::kCompute || op.kind == OperationKind::kCopy;
  TimeSegment segment{begin, end, TimeKind::kCompute, kNoCommunicator, at.operation};
  if (!computes) {
    segment.kind = op.kind == OperationKind::kHost ? TimeKind::kHost : TimeKind::kExposed;
    segment.communicator = op.communicator;
  } else if (op.phase == Phase::kRecompute) {
    segment.kind = TimeKind::kRecompute;
  }
  return segment;
}

/// Until when the ranks of a track lived.
Nanoseconds end_of_life(const TraceIndex& index, int track) {
  Nanoseconds end = index.step().end;
  for (const Span& span : index.track(track).spans) {
    if (span.state == SpanState::kRunning) {
      end = std::min(end, span.ended);
    }
  }
  return end;
}

}  // namespace

std::string_view name_of(TimeKind kind) {
  static constexpr std::string_view kNames[] = {
      "compute", "recompute", "exposed", "waiting", "bubble", "host", "idle"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<TimeSegment> split_time(const TraceIndex& index, int track) {
  std::vector<TimeSegment> segments;
  const TraceStep& step = index.step();
  Nanoseconds cursor = step.begin;
  for (const std::uint32_t operation : index.program(track).compute) {
    const SpanTimes times = index.times({track, operation});
    // Clamped, so that the parts add up whatever a recorded clock says.
    const Nanoseconds begin = std::clamp(times.started, cursor, step.end);
    const Nanoseconds end = std::clamp(times.ended, begin, step.end);
    if (end == begin) {
      continue;
    }
    if (begin > cursor) {
      GapWalk gap(index, track, cursor, begin);
      if (index.operation({track, operation}).kind == OperationKind::kCompute) {
        gap.before(operation);
      } else {
        gap.during(operation);
        gap.before(operation);
      }
      gap.append_to(segments);
    }
    segments.push_back(busy(index, {track, operation}, begin, end));
    cursor = end;
  }
  const Nanoseconds alive = end_of_life(index, track);
  if (cursor < alive) {
    GapWalk gap(index, track, cursor, alive);
    const std::uint32_t last = index.last_operation(track);
    if (last != kNoSpan) {
      gap.tail(index.times({track, last}).ended);
      gap.during(last);
      gap.before(last);
    } else {
      gap.tail(cursor);
    }
    gap.append_to(segments);
    cursor = alive;
  }
  if (cursor < step.end) {
    segments.push_back({cursor, step.end, TimeKind::kIdle, kNoCommunicator, kNoSpan});
  }
  return segments;
}

}  // namespace lockstep
