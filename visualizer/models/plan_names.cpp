#include "visualizer/models/plan_names.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/model_graph.h"

namespace lockstep::view {
namespace {

/// More segments are named by the first and the last.
constexpr std::size_t kMostNamed = 3;

}  // namespace

std::int32_t track_of(const TraceIndex& index, int rank) {
  const int ranks = index.plan().mesh.world_size();
  if (rank < 0 || rank >= ranks) {
    throw UsageError("view", fmt::format("rank {}: there are {}, from 0", rank, ranks));
  }
  return index.step().track_of_rank[static_cast<std::size_t>(rank)];
}

std::string ranks_text(const TraceStep& step, int rank) {
  const std::size_t alike = step.track(rank).ranks.size();
  return alike > 1 ? fmt::format("rank {} (x {})", rank, alike) : fmt::format("rank {}", rank);
}

std::string segments_name(const ModelGraph& graph, const std::vector<std::int32_t>& parameters) {
  std::vector<std::int32_t> segments;
  for (const std::int32_t parameter : parameters) {
    const std::int32_t segment = graph.parameters[static_cast<std::size_t>(parameter)].segment;
    if (std::find(segments.begin(), segments.end(), segment) == segments.end()) {
      segments.push_back(segment);
    }
  }
  if (segments.empty()) {
    return "nothing";
  }
  if (segments.size() > kMostNamed) {
    return graph.segment_name(segments.front()) + ".." + graph.segment_name(segments.back());
  }
  std::string name;
  for (const std::int32_t segment : segments) {
    name += (name.empty() ? "" : "+") + graph.segment_name(segment);
  }
  return name;
}

std::string layout_name(const ModelGraph& graph, const Layout& layout) {
  std::vector<std::int32_t> parameters;
  parameters.reserve(layout.entries.size());
  for (const LayoutEntry& entry : layout.entries) {
    parameters.push_back(entry.parameter);
  }
  return segments_name(graph, parameters);
}

}  // namespace lockstep::view
