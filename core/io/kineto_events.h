// KinetoEvents: the events of one Chrome or Kineto trace file as they stand there, sorted into
// lanes only: no order, no ranks, no nesting, times on the file's own clock. An inner part of
// core/io/kineto_reader.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/imported_trace.h"
#include "core/io/byte_source.h"

namespace lockstep {

/// A pid, tid or flow id: a number, or the number of a name below kNamed + 2^32.
using EventId = std::int64_t;
inline constexpr EventId kNamedIds = INT64_MIN;

struct KinetoProcess {
  NameId name = 0;
  NameId label = 0;
  std::int64_t sort = 0;
  bool sorted = false;  ///< `sort` was given
};

/// The begin or end of a span (phases B and E).
struct KinetoMark {
  Nanoseconds time = 0;
  NameId name = 0;
  NameId category = 0;
  bool begins = false;
};

struct KinetoLane {
  EventId pid = 0;
  EventId tid = 0;
  NameId name = 0;
  std::int64_t sort = 0;
  bool sorted = false;
  std::vector<ImportedSpan> spans;
  std::vector<KinetoMark> marks;
};

struct KinetoFlowMark {
  NameId name = 0;
  NameId category = 0;
  EventId id = 0;
  Nanoseconds time = 0;
  std::uint32_t lane = 0;
  char phase = 's';  ///< s, t or f
};

struct KinetoEvents {
  std::optional<int> rank;  ///< of distributedInfo
  std::optional<int> world_size;
  NameId backend = 0;
  NameId device = 0;
  Nanoseconds base = 0;
  std::map<EventId, KinetoProcess> processes;
  std::vector<KinetoLane> lanes;  ///< in order of appearance
  std::vector<KinetoFlowMark> flows;
  std::int64_t negative = 0;    ///< spans of negative length, taken as empty
  bool unclosed_array = false;  ///< the last ] was missing
};

/// Names and collectives go to `trace`. BadInputError "name: byte N: what".
KinetoEvents read_kineto_events(ByteSource& source, std::string_view name, ImportedTrace& trace);

/// "12.5" microseconds as nanoseconds, rounded; nothing for what is no number or beyond 36 years.
std::optional<Nanoseconds> nanoseconds_of(std::string_view microseconds);

}  // namespace lockstep
