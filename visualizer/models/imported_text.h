// ImportedText: what is known about the trace of another tool, without its plan: ranks, lanes, how
// busy they were, what took longest and what was sent; the text twin of its timeline, and figures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "visualizer/models/imported_lanes.h"

namespace lockstep::view {

/// Of one rank, in a window of time.
struct ImportedBusy {
  std::string rank;
  Nanoseconds kernels = 0;    ///< some stream computed
  Nanoseconds transfers = 0;  ///< some lane communicated
  Nanoseconds exposed = 0;    ///< communicated while none computed
  Nanoseconds host = 0;       ///< of the host's busiest thread
  bool has_kernels = false;   ///< the file knows of a device
  bool has_transfers = false;
};

/// Exact; costs the spans of the window that compute or communicate.
std::vector<ImportedBusy> busy_times(const ImportedTrace& trace, const TimeWindow& window);

/// The longest-running names first.
struct ImportedName {
  std::string name;
  std::size_t count = 0;
  Nanoseconds time = 0;  ///< of all of them
};
std::vector<ImportedName> longest_names(const ImportedLanes& lanes, std::size_t most);

/// Lines end with newlines.
std::string imported_text(const ImportedLanes& lanes);

}  // namespace lockstep::view
