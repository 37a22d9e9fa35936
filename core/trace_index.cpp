#include "core/trace_index.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"
#include "core/queues.h"

namespace lockstep {
namespace {

auto order_of(const MessageKey& key) {
  return std::tie(key.peer, key.tag, key.kind);
}

ProgramIndex index_of(const Program& program, std::size_t communicators) {
  ProgramIndex index;
  index.program = &program;
  const std::size_t count = program.operations.size();
  index.slot.assign(count, kNoSpan);
  index.previous_in_queue.assign(count, kNoSpan);
  index.previous_on_communicator.assign(count, kNoSpan);
  index.collectives.resize(communicators);
  QueueNumbering queues;
  std::array<std::uint32_t, kQueueCount> in_queue{};
  in_queue.fill(kNoSpan);
  std::vector<std::uint32_t> on_communicator(communicators, kNoSpan);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Operation& op = program.operations[i];
    if (!takes_place(op)) {
      continue;
    }
    index.slot[i] = static_cast<std::uint32_t>(index.operations.size());
    index.operations.push_back(i);
    index.previous_in_queue[i] = std::exchange(in_queue[queues.of(op)], i);
    if (op.has(kHostSync) || op.kind == OperationKind::kHost) {
      index.syncs.push_back(i);
    }
    if (op.stream == Stream::kCompute) {
      index.compute.push_back(i);
    }
    if (op.kind == OperationKind::kCollective) {
      index.previous_on_communicator[i] = std::exchange(on_communicator[op.communicator], i);
      index.collectives[op.communicator].push_back(i);
    } else if (op.kind == OperationKind::kSend || op.kind == OperationKind::kRecv) {
      index.messages.push_back({op.peer, op.tag, op.kind, i});
    }
  }
  std::sort(index.messages.begin(), index.messages.end(), [](const auto& a, const auto& b) {
    return order_of(a) < order_of(b);
  });
  return index;
}

std::size_t span_count(const Program& program) {
  return static_cast<std::size_t>(
      std::count_if(program.operations.begin(), program.operations.end(), takes_place));
}

[[noreturn]] void refuse(const std::string& what) {
  throw BadInputError("trace", what);
}

void check_track(const Plan& plan, const Section& section, const TraceTrack& track) {
  if (track.class_index < 0 || track.class_index >= plan.class_count() || track.ranks.empty()) {
    refuse(
        fmt::format("a track of class {}: the plan has {}", track.class_index, plan.class_count()));
  }
  const Program& program = section.programs[static_cast<std::size_t>(track.class_index)];
  if (track.spans.size() != span_count(program)) {
    refuse(fmt::format("track of rank {} has {} spans, its program has {} operations",
                       track.ranks.front(),
                       track.spans.size(),
                       span_count(program)));
  }
  std::uint32_t operation = 0;
  for (const Span& span : track.spans) {
    while (!takes_place(program.operations[operation])) {
      ++operation;
    }
    if (span.operation != operation) {
      refuse(fmt::format("track of rank {}: a span of operation {} where {} is due",
                         track.ranks.front(),
                         span.operation,
                         operation));
    }
    ++operation;
  }
}

}  // namespace

void check_trace(const Plan& plan, const TraceStep& step) {
  if (step.section < 0 || static_cast<std::size_t>(step.section) >= plan.sections.size()) {
    refuse(fmt::format("section {}: the plan has {}", step.section, plan.sections.size()));
  }
  const auto ranks = static_cast<std::size_t>(plan.mesh.world_size());
  if (step.track_of_rank.size() != ranks) {
    refuse(fmt::format("{} ranks, the plan has {}", step.track_of_rank.size(), ranks));
  }
  for (const TraceTrack& track : step.tracks) {
    check_track(plan, plan.sections[static_cast<std::size_t>(step.section)], track);
  }
  std::size_t listed = 0;
  for (std::size_t t = 0; t < step.tracks.size(); ++t) {
    for (const std::int32_t rank : step.tracks[t].ranks) {
      if (rank < 0 || static_cast<std::size_t>(rank) >= ranks ||
          step.track_of_rank[static_cast<std::size_t>(rank)] != static_cast<std::int32_t>(t) ||
          plan.class_of_rank(rank) != step.tracks[t].class_index) {
        refuse(fmt::format("rank {} is in a track that is not its own", rank));
      }
      ++listed;
    }
  }
  if (listed != ranks) {
    refuse(fmt::format("{} of {} ranks are in a track", listed, ranks));
  }
}

TraceIndex::TraceIndex(const Plan& plan, const TraceStep& step) : plan_(plan), step_(step) {
  check_trace(plan, step);
  for (const Program& program : plan.sections[static_cast<std::size_t>(step.section)].programs) {
    programs_.push_back(index_of(program, plan.communicators.size()));
  }
  member_tracks_.resize(step.tracks.size() * plan.communicators.size());
}

SpanTimes TraceIndex::times(const TrackOperation& at) const {
  const Span& it = span(at);
  SpanTimes times{it.issued, it.arrived, it.started, it.ended};
  switch (it.state) {
    case SpanState::kDone:
    case SpanState::kSkipped:
    case SpanState::kRunning:
      return times;
    case SpanState::kPlanned:
      times.issued = step_.end;
      [[fallthrough]];
    case SpanState::kIssued:
      times.arrived = step_.end;
      [[fallthrough]];
    case SpanState::kArrived:
      times.started = step_.end;
      times.ended = step_.end;
  }
  return times;
}

void TraceIndex::consider(const TrackOperation& at,
                          std::uint32_t candidate,
                          Binding& binding) const {
  // Only earlier operations bind; that also ends every walk back.
  if (candidate >= at.operation || program(at.track).slot[candidate] == kNoSpan) {
    return;
  }
  const Nanoseconds ended = times({at.track, candidate}).ended;
  const bool later = binding.kind == Binding::Kind::kNothing || ended > binding.time ||
                     (ended == binding.time && candidate > binding.operation);
  if (later) {
    binding = {Binding::Kind::kOperation, ended, candidate};
  }
}

Binding TraceIndex::binding(const TrackOperation& at) const {
  const ProgramIndex& index = program(at.track);
  const Operation& op = index.program->operations[at.operation];
  Binding binding;
  for (const std::uint32_t on : index.program->dependencies_of(op)) {
    consider(at, on, binding);
  }
  consider(at, index.previous_in_queue[at.operation], binding);
  consider(at, index.previous_on_communicator[at.operation], binding);
  const Nanoseconds issued = times(at).issued;
  const bool host =
      binding.kind == Binding::Kind::kNothing ? issued > step_.begin : issued > binding.time;
  if (host) {
    binding = {Binding::Kind::kHost, issued, kNoSpan};
    const std::uint32_t computed = computed_before(at);
    if (computed != kNoSpan && times({at.track, computed}).ended == issued) {
      binding = {Binding::Kind::kOperation, issued, computed};  // the host computes itself (CPU)
    }
  } else if (binding.kind == Binding::Kind::kNothing) {
    binding.time = step_.begin;
  }
  return binding;
}

namespace {

/// The last of ascending `operations` before `operation`, or kNoSpan.
std::uint32_t last_before(const std::vector<std::uint32_t>& operations, std::uint32_t operation) {
  const auto next = std::lower_bound(operations.begin(), operations.end(), operation);
  return next == operations.begin() ? kNoSpan : *(next - 1);
}

}  // namespace

std::uint32_t TraceIndex::computed_before(const TrackOperation& at) const {
  return last_before(program(at.track).compute, at.operation);
}

std::uint32_t TraceIndex::sync_before(const TrackOperation& at) const {
  return last_before(program(at.track).syncs, at.operation);
}

std::uint32_t TraceIndex::last_operation(int track) const {
  const auto busy = [&](std::uint32_t operation) {
    const SpanState state = span({track, operation}).state;
    return state != SpanState::kIssued && state != SpanState::kPlanned;
  };
  std::uint32_t last = kNoSpan;
  Nanoseconds latest = 0;
  bool latest_busy = false;
  for (const std::uint32_t operation : program(track).operations) {
    const Nanoseconds ended = times({track, operation}).ended;
    const bool is_busy = busy(operation);
    if (last == kNoSpan || ended > latest || (ended == latest && is_busy && !latest_busy)) {
      last = operation;
      latest = ended;
      latest_busy = is_busy;
    }
  }
  return last;
}

const std::vector<std::int32_t>& TraceIndex::member_tracks(int track,
                                                           std::uint8_t communicator) const {
  std::vector<std::int32_t>& tracks =
      member_tracks_[static_cast<std::size_t>(track) * plan_.communicators.size() + communicator];
  if (tracks.empty()) {
    const int rank = this->track(track).ranks.front();
    for (const int member : members(plan_, plan_.communicators[communicator], rank)) {
      tracks.push_back(step_.track_of_rank[static_cast<std::size_t>(member)]);
    }
    std::sort(tracks.begin(), tracks.end());
    tracks.erase(std::unique(tracks.begin(), tracks.end()), tracks.end());
  }
  return tracks;
}

TrackOperation TraceIndex::partner(const TrackOperation& at) const {
  const Operation& op = operation(at);
  const Mesh& mesh = plan_.mesh;
  const int rank = track(at.track).ranks.front();
  if (op.peer < 0 || op.peer >= mesh.size(Axis::kPipeline)) {
    return {};
  }
  const int peer = mesh.with(rank, Axis::kPipeline, op.peer);
  const std::int32_t other = step_.track_of_rank[static_cast<std::size_t>(peer)];
  const MessageKey wanted{
      static_cast<std::int16_t>(mesh.coordinate(rank, Axis::kPipeline)),
      op.tag,
      op.kind == OperationKind::kSend ? OperationKind::kRecv : OperationKind::kSend,
      0};
  const std::vector<MessageKey>& messages = program(other).messages;
  const auto found = std::lower_bound(
      messages.begin(), messages.end(), wanted, [](const MessageKey& a, const MessageKey& b) {
        return order_of(a) < order_of(b);
      });
  if (found == messages.end() || order_of(wanted) < order_of(*found)) {
    return {};
  }
  return {other, found->operation};
}

TrackOperation TraceIndex::same_collective(const TrackOperation& at, int member_track) const {
  const std::uint8_t communicator = operation(at).communicator;
  const std::vector<std::uint32_t>& mine = program(at.track).collectives[communicator];
  const std::vector<std::uint32_t>& others = program(member_track).collectives[communicator];
  const auto place = static_cast<std::size_t>(
      std::lower_bound(mine.begin(), mine.end(), at.operation) - mine.begin());
  return {member_track, place < others.size() ? others[place] : kNoSpan};
}

TrackOperation TraceIndex::last_arrival(const TrackOperation& at) const {
  const Operation& op = operation(at);
  TrackOperation last = at;
  Nanoseconds latest = times(at).arrived;
  const auto consider_end = [&](const TrackOperation& end) {
    if (end.track < 0 || end.operation == kNoSpan) {
      return;
    }
    const Nanoseconds arrived = times(end).arrived;
    if (arrived > latest) {
      last = end;
      latest = arrived;
    }
  };
  if (op.kind == OperationKind::kSend || op.kind == OperationKind::kRecv) {
    consider_end(partner(at));
  } else if (op.kind == OperationKind::kCollective) {
    for (const std::int32_t member : member_tracks(at.track, op.communicator)) {
      if (member != at.track) {
        consider_end(same_collective(at, member));
      }
    }
  }
  return last;
}

}  // namespace lockstep
