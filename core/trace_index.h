// TraceIndex: questions about one step of a trace that need the plan too: which span belongs to an
// operation, what it waited for last, who arrived last at a meeting, who is at the other end.
//
// Tables are per plan class and built once; times are looked up in the step's tracks, which must
// outlive the index. The trace has to fit the plan (check_trace()).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/trace.h"

namespace lockstep {

inline constexpr std::uint32_t kNoSpan = 0xffffffffU;

/// An operation of a track.
struct TrackOperation {
  std::int32_t track = -1;
  std::uint32_t operation = kNoSpan;
};

/// The four times of a span; what had not happened by the end of the step stands at its end.
struct SpanTimes {
  Nanoseconds issued = 0;
  Nanoseconds arrived = 0;
  Nanoseconds started = 0;
  Nanoseconds ended = 0;
};

/// The last thing that an operation waited for before it arrived.
struct Binding {
  enum class Kind : std::uint8_t {
    kNothing,    ///< it could have begun with the step
    kHost,       ///< the host issued it at `time`
    kOperation,  ///< `operation` ended at `time`: stream predecessor, dependency, or queue
  };
  Kind kind = Kind::kNothing;
  Nanoseconds time = 0;
  std::uint32_t operation = kNoSpan;
};

/// The send or recv at the other end of a message, by what they agree in.
struct MessageKey {
  std::int16_t peer = kNoPeer;  ///< pipeline coordinate
  std::uint32_t tag = 0;
  OperationKind kind = OperationKind::kSend;
  std::uint32_t operation = 0;
};

/// What does not depend on times: of one program.
struct ProgramIndex {
  const Program* program = nullptr;
  std::vector<std::uint32_t> slot;               ///< operation -> place of its span, or kNoSpan
  std::vector<std::uint32_t> operations;         ///< those that have spans, ascending
  std::vector<std::uint32_t> previous_in_queue;  ///< by operation (core/queues.h)
  std::vector<std::uint32_t> previous_on_communicator;  ///< by operation: collectives
  std::vector<std::uint32_t> syncs;                     ///< what the host waits for, ascending
  std::vector<std::uint32_t> compute;                   ///< on the compute stream, ascending
  std::vector<std::vector<std::uint32_t>> collectives;  ///< by communicator, ascending
  std::vector<MessageKey> messages;                     ///< sorted by (peer, tag, kind)
};

/// Throws BadInputError unless every track has one span per operation other than alloc and free, in
/// order, and every rank is in one track of its class.
void check_trace(const Plan& plan, const TraceStep& step);

class TraceIndex {
 public:
  TraceIndex(const Plan& plan, const TraceStep& step);

  const Plan& plan() const { return plan_; }
  const TraceStep& step() const { return step_; }
  int track_count() const { return static_cast<int>(step_.tracks.size()); }
  const TraceTrack& track(int track) const { return step_.tracks[static_cast<std::size_t>(track)]; }
  const ProgramIndex& program(int track) const {
    return programs_[static_cast<std::size_t>(this->track(track).class_index)];
  }
  const Operation& operation(const TrackOperation& at) const {
    return program(at.track).program->operations[at.operation];
  }
  const Communicator& communicator(const Operation& op) const {
    return plan_.communicators[op.communicator];
  }

  const Span& span(const TrackOperation& at) const {
    return track(at.track).spans[program(at.track).slot[at.operation]];
  }
  SpanTimes times(const TrackOperation& at) const;

  /// Candidates are what rule R2 of core/plan.h names. Of several that ended at the same time the
  /// latest in program order binds; the host binds only when it was later than all of them.
  Binding binding(const TrackOperation& at) const;
  /// The last operation before `operation` that the host waited for, or kNoSpan.
  std::uint32_t sync_before(const TrackOperation& at) const;
  /// The operation of the track that ended last, or kNoSpan in an empty track. Of operations that
  /// never ended: the first that waits for others or runs.
  std::uint32_t last_operation(int track) const;

  /// The tracks that have members in the group of `track`, ascending.
  const std::vector<std::int32_t>& member_tracks(int track, std::uint8_t communicator) const;
  /// The other end of a send or recv; track -1 where there is none.
  TrackOperation partner(const TrackOperation& at) const;
  /// Who made a collective or message start: the end that arrived last, itself unless another was
  /// later.
  TrackOperation last_arrival(const TrackOperation& at) const;
  /// The same collective in another member track; operation kNoSpan where it has none.
  TrackOperation same_collective(const TrackOperation& at, int member_track) const;

 private:
  void consider(const TrackOperation& at, std::uint32_t candidate, Binding& binding) const;
  /// The last operation of the compute stream before `at`, or kNoSpan.
  std::uint32_t computed_before(const TrackOperation& at) const;

  const Plan& plan_;
  const TraceStep& step_;
  std::vector<ProgramIndex> programs_;                            ///< by class
  mutable std::vector<std::vector<std::int32_t>> member_tracks_;  ///< by track and communicator
};

}  // namespace lockstep
