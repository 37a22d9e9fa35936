#include "visualizer/models/area_split.h"

#include <algorithm>

namespace lockstep::view {

AreaSplitter::AreaSplitter(const TraceIndex& index) {
  for (int track = 0; track < index.track_count(); ++track) {
    const std::vector<std::int32_t>& ranks = index.track(track).ranks;
    tracks_.push_back(
        {ranks.front(), static_cast<std::int32_t>(ranks.size()), split_time(index, track)});
  }
}

std::vector<AreaSplit> AreaSplitter::split(const TimeWindow& area) const {
  std::vector<AreaSplit> splits;
  for (const Track& track : tracks_) {
    AreaSplit split{track.rank, track.count, {}};
    auto at = std::partition_point(
        track.segments.begin(), track.segments.end(), [&](const TimeSegment& segment) {
          return segment.end <= area.from;
        });
    for (; at != track.segments.end() && at->begin < area.to; ++at) {
      split.times[static_cast<std::size_t>(at->kind)] +=
          std::min(at->end, area.to) - std::max(at->begin, area.from);
    }
    splits.push_back(split);
  }
  return splits;
}

}  // namespace lockstep::view
