#include "visualizer/models/dependencies.h"

#include <algorithm>

#include "visualizer/models/timeline.h"

namespace lockstep::view {
namespace {

/// All ends of a collective or message but `at` itself.
std::vector<TrackOperation> peers_of(const TraceIndex& index, const TrackOperation& at) {
  const Operation& op = index.operation(at);
  std::vector<TrackOperation> peers;
  const auto add = [&](const TrackOperation& peer) {
    if (peer.track >= 0 && peer.operation != kNoSpan) {
      peers.push_back(peer);
    }
  };
  if (op.kind == OperationKind::kCollective) {
    for (const std::int32_t member : index.member_tracks(at.track, op.communicator)) {
      if (member != at.track) {
        add(index.same_collective(at, member));
      }
    }
  } else if (is_message(op)) {
    add(index.partner(at));
  }
  return peers;
}

class LinkList {
 public:
  LinkList(const TraceIndex& index, const TrackOperation& at)
      : index_(index), at_(at), times_(index.times(at)) {}

  std::vector<Link> collect() {
    const ProgramIndex& program = index_.program(at_.track);
    for (const std::uint32_t on : program.program->dependencies_of(index_.operation(at_))) {
      add_own(LinkKind::kResult, on);
    }
    add_own(LinkKind::kStream, program.previous_in_queue[at_.operation]);
    add_own(LinkKind::kGroup, program.previous_on_communicator[at_.operation]);
    for (const TrackOperation& peer : peers_of(index_, at_)) {
      add(LinkKind::kPeer, peer, index_.times(peer).arrived);
    }
    add_issue();
    mark();
    std::stable_sort(links_.begin(), links_.end(), [](const Link& a, const Link& b) {
      return a.determines != b.determines ? a.determines : a.over > b.over;
    });
    return std::move(links_);
  }

 private:
  void add(LinkKind kind, const TrackOperation& operation, Nanoseconds over) {
    links_.push_back({kind, operation, over, times_.started - over, false});
  }

  void add_own(LinkKind kind, std::uint32_t operation) {
    if (operation == kNoSpan || index_.program(at_.track).slot[operation] == kNoSpan) {
      return;  // nothing, or an alloc or free, which takes no time
    }
    const bool known = std::any_of(links_.begin(), links_.end(), [&](const Link& link) {
      return link.operation.operation == operation;
    });
    if (!known) {
      add(kind, {at_.track, operation}, index_.times({at_.track, operation}).ended);
    }
  }

  void add_issue() {
    const Binding binding = index_.binding(at_);
    TrackOperation before{at_.track, index_.sync_before(at_)};
    const bool computes =
        binding.kind == Binding::Kind::kOperation && times_.issued == binding.time &&
        std::none_of(links_.begin(), links_.end(), [&](const Link& link) {
          return link.operation.track == at_.track && link.operation.operation == binding.operation;
        });
    if (computes) {
      before.operation = binding.operation;  // the host computes itself
    }
    if (times_.issued > index_.step().begin || before.operation != kNoSpan) {
      add(LinkKind::kIssue, before, times_.issued);
    }
  }

  /// A late peer binds before anything of the rank's own.
  void mark() {
    const TrackOperation late = index_.last_arrival(at_);
    const Binding binding = index_.binding(at_);
    for (Link& link : links_) {
      const bool same_rank = link.operation.track == at_.track;
      if (late.track != at_.track) {
        link.determines = link.kind == LinkKind::kPeer && link.operation.track == late.track;
      } else if (binding.kind == Binding::Kind::kHost) {
        link.determines = link.kind == LinkKind::kIssue;
      } else if (binding.kind == Binding::Kind::kOperation) {
        link.determines = same_rank && link.operation.operation == binding.operation;
      }
      if (link.determines) {
        return;
      }
    }
  }

  const TraceIndex& index_;
  TrackOperation at_;
  SpanTimes times_;
  std::vector<Link> links_;
};

/// Later operations of the track that could have waited for `at`, by their own links.
std::vector<std::uint32_t> followers(const TraceIndex& index, const TrackOperation& at) {
  const ProgramIndex& program = index.program(at.track);
  const bool syncs = std::binary_search(program.syncs.begin(), program.syncs.end(), at.operation);
  const bool computes = index.operation(at).stream == Stream::kCompute;
  const Nanoseconds ended = index.times(at).ended;  // a host that computes issues next just then
  std::vector<std::uint32_t> found;
  for (auto it =
           std::upper_bound(program.operations.begin(), program.operations.end(), at.operation);
       it != program.operations.end();
       ++it) {
    const auto on = program.program->dependencies_of(program.program->operations[*it]);
    if (program.previous_in_queue[*it] == at.operation ||
        program.previous_on_communicator[*it] == at.operation ||
        std::find(on.begin(), on.end(), at.operation) != on.end() ||
        (syncs && index.sync_before({at.track, *it}) == at.operation) ||
        (computes && index.times({at.track, *it}).issued == ended)) {
      found.push_back(*it);
    }
  }
  return found;
}

}  // namespace

std::string_view name_of(LinkKind kind) {
  static constexpr std::string_view kNames[] = {"result", "stream", "group", "peer", "issue"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Link> waited_for(const TraceIndex& index, const TrackOperation& at) {
  return LinkList(index, at).collect();
}

TrackOperation determining(const TraceIndex& index, const TrackOperation& at) {
  const TrackOperation late = index.last_arrival(at);
  if (late.track != at.track) {
    return late;
  }
  const Binding binding = index.binding(at);
  return {at.track,
          binding.kind == Binding::Kind::kHost ? index.sync_before(at) : binding.operation};
}

std::vector<TrackOperation> determined(const TraceIndex& index, const TrackOperation& at) {
  std::vector<TrackOperation> found;
  for (const std::uint32_t operation : followers(index, at)) {
    const TrackOperation next{at.track, operation};
    const TrackOperation before = determining(index, next);
    if (before.track == at.track && before.operation == at.operation) {
      found.push_back(next);
    }
  }
  for (const TrackOperation& peer : peers_of(index, at)) {
    const TrackOperation before = determining(index, peer);
    if (before.track == at.track && before.operation == at.operation) {
      found.push_back(peer);
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    return index.times(a).started < index.times(b).started;
  });
  return found;
}

}  // namespace lockstep::view
