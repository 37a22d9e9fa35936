// Dependencies: what an operation of a rank waited for before it started, what was over last and
// so determined its start, and which operations it determined in turn.
//
//     for (const Link& link : waited_for(index, at)) ...   // the determining one is first
//     determining(index, at)                               // follow it back through all ranks
//     determined(index, at)                                // and forward
//
// Candidates are those of rule R2 of core/plan.h; which of them binds is TraceIndex's answer, so
// that following determining() back is walking the critical path (core/critical_path.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/trace_index.h"

namespace lockstep::view {

enum class LinkKind : std::uint8_t {
  kResult,  ///< reads what it made: a dependency of the plan
  kStream,  ///< before it in its queue
  kGroup,   ///< before it on its group
  kPeer,    ///< the other end of its message, or another rank's part of its collective
  kIssue,   ///< the host handed it over only then
};
std::string_view name_of(LinkKind kind);

/// Something that had to happen before an operation started.
struct Link {
  LinkKind kind = LinkKind::kResult;
  /// Peers: that arrived; kIssue: that the host waited for or ran before, if any.
  TrackOperation operation;
  Nanoseconds over = 0;     ///< when it no longer stood in the way
  Nanoseconds slack = 0;    ///< how much later that could have been: start less `over`
  bool determines = false;  ///< it was the last
};

/// Every operation once. The one that determines the start comes first, then the later ones; one
/// is marked unless the operation began with the step.
std::vector<Link> waited_for(const TraceIndex& index, const TrackOperation& at);

/// The operation whose end (of a peer: arrival) let `at` start; operation kNoSpan where the host or
/// the step's begin did, without an operation before it.
TrackOperation determining(const TraceIndex& index, const TrackOperation& at);

/// Operations that `at` determined, by their start. Those of other ranks are the other parts of
/// its collective or message, if it came last.
std::vector<TrackOperation> determined(const TraceIndex& index, const TrackOperation& at);

}  // namespace lockstep::view
