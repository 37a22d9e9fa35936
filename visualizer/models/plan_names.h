// Plan names: short names and look-ups that several view models need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/trace_index.h"

namespace lockstep {
struct ModelGraph;
}

namespace lockstep::view {

/// The track of `rank`; UsageError when there is no such rank.
std::int32_t track_of(const TraceIndex& index, int rank);

/// "rank 0", of a folded track "rank 0 (x 8)": how many it stands for.
std::string ranks_text(const TraceStep& step, int rank);

/// Segments of the model that parameters belong to, in order of first use: "h.3",
/// "embedding+head", "h.0..h.11" where they are many.
std::string segments_name(const ModelGraph& graph, const std::vector<std::int32_t>& parameters);
std::string layout_name(const ModelGraph& graph, const Layout& layout);

}  // namespace lockstep::view
