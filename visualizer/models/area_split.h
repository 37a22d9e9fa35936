// Area split: where the time of every kind of rank went inside a span of time, by the report's own
// causes (core/time_split.h); over the whole step it is the report.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/time_split.h"
#include "visualizer/models/lanes.h"

namespace lockstep::view {

inline constexpr int kTimeKindCount = 7;

struct AreaSplit {
  std::int32_t rank = 0;   ///< the first of its track
  std::int32_t count = 1;  ///< ranks of the track
  std::array<Nanoseconds, kTimeKindCount> times{};

  Nanoseconds of(TimeKind kind) const { return times[static_cast<std::size_t>(kind)]; }
};

/// The segments of all tracks, so that many areas can be asked about.
class AreaSplitter {
 public:
  explicit AreaSplitter(const TraceIndex& index);
  std::vector<AreaSplit> split(const TimeWindow& area) const;

 private:
  struct Track {
    std::int32_t rank = 0;
    std::int32_t count = 1;
    std::vector<TimeSegment> segments;
  };
  std::vector<Track> tracks_;
};

}  // namespace lockstep::view
