// PathSummary: what the critical path of a step consists of, and which boxes of a timeline lie on
// it. The shares are of core/critical_path.h's segments and add up to the step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/critical_path.h"

namespace lockstep::view {

/// One kind of work on the path.
struct PathShare {
  PathCause cause = PathCause::kCompute;
  std::string group;  ///< of communication: "dp"; empty for others
  Nanoseconds time = 0;
  std::int32_t pieces = 0;

  /// "compute", "communication dp"
  std::string name() const;
};

class PathSummary {
 public:
  PathSummary(const TraceIndex& index, std::vector<PathSegment> path);

  /// In order of time, without gaps.
  const std::vector<PathSegment>& path() const { return path_; }
  /// Longest first.
  const std::vector<PathShare>& shares() const { return shares_; }
  Nanoseconds total() const;
  /// Tracks that the path runs through, those with most of its time first.
  const std::vector<std::int32_t>& tracks() const { return tracks_; }

 private:
  std::vector<PathSegment> path_;
  std::vector<PathShare> shares_;
  std::vector<std::int32_t> tracks_;
};

/// Whether the segment is an operation that ran, not the time before it.
bool ran(const TraceIndex& index, const PathSegment& segment);

/// A line for every share.
std::string path_text(const PathSummary& summary, bool utf8 = false);

}  // namespace lockstep::view
