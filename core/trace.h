// Trace: what happened, by the clock. The one type that a simulation and a real run both leave;
// reports, timelines and comparisons read it together with the plan that was run.
//
// A trace holds steps; a step holds one track per set of ranks that did the same at the same times
// (folding: a simulation of equal ranks has few tracks, a real run has one per rank); a track holds
// one span per operation other than alloc and free, in program order. Names, bytes, groups and
// memory are the plan's: a span points at its operation. The only clock is integer nanoseconds
// since the start of the trace.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// Integer nanoseconds, the only clock. Costs are double seconds, rounded once.
using Nanoseconds = std::int64_t;

/// How far an operation came. Times after that point mean nothing.
enum class SpanState : std::uint8_t {
  kDone,     ///< all four times hold
  kSkipped,  ///< its guard was set: started == ended
  kRunning,  ///< started, and cut off at `ended`, when its rank died
  kArrived,  ///< waited for other ranks until the end
  kIssued,   ///< waited for its stream or its dependencies until the end
  kPlanned,  ///< the host never came to it
};

/// One operation of one track.
struct Span {
  std::uint32_t operation = 0;  ///< index into the program
  SpanState state = SpanState::kDone;
  Nanoseconds issued = 0;   ///< the host had handed it to its stream
  Nanoseconds arrived = 0;  ///< this rank was ready: stream free, dependencies done
  Nanoseconds started = 0;  ///< all members were ready; compute: equals arrived
  Nanoseconds ended = 0;
};

/// Ranks with equal times.
struct TraceTrack {
  std::int32_t class_index = 0;     ///< of the plan's programs
  std::vector<std::int32_t> ranks;  ///< ascending
  std::vector<Span> spans;          ///< ascending by operation
};

/// One run of one section.
struct TraceStep {
  std::int32_t section = 0;    ///< index into Plan::sections
  std::int32_t iteration = 0;  ///< 0-based optimizer step
  Nanoseconds begin = 0;
  Nanoseconds end = 0;                      ///< last operation of the last rank
  std::vector<TraceTrack> tracks;           ///< ordered by their first rank
  std::vector<std::int32_t> track_of_rank;  ///< index into tracks, by rank
  const TraceTrack& track(int rank) const {
    return tracks[static_cast<std::size_t>(track_of_rank[static_cast<std::size_t>(rank)])];
  }
};

/// A rank that could not go on: `operation` waits for `missing`, which never came. A rank that died
/// misses itself.
struct Stall {
  std::int32_t rank = 0;  ///< the first of its track
  std::uint32_t operation = 0;
  Nanoseconds since = 0;
  std::vector<std::int32_t> missing;  ///< ranks
};

enum class TraceSource : std::uint8_t { kSimulated, kMeasured };

struct Trace {
  TraceSource source = TraceSource::kSimulated;
  std::vector<TraceStep> steps;
  std::vector<Stall> stalls;                               ///< empty when all steps were finished
  std::vector<std::pair<std::string, std::string>> facts;  ///< about the run: host, seed, what-ifs
};

}  // namespace lockstep
