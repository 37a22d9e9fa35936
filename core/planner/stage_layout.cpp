#include "core/planner/stage_layout.h"

#include <algorithm>

#include "core/planner/planner.h"

namespace lockstep {
namespace {

/// Layers of each virtual stage: as given, or as even as possible. What is left over goes to the
/// middle stages first, because the first and the last also hold embedding and head.
std::vector<std::int64_t> layers_per_stage(const Scenario& scenario,
                                           std::int64_t layers,
                                           std::int32_t stages) {
  const std::vector<std::int64_t>& given = scenario.strategy.pipeline.layers_per_stage;
  if (!given.empty()) {
    return given;
  }
  std::vector<std::int64_t> counts(static_cast<std::size_t>(stages), layers / stages);
  std::int64_t left = layers % stages;
  for (std::int32_t stage = 1; stage + 1 < stages && left > 0; ++stage, --left) {
    ++counts[static_cast<std::size_t>(stage)];
  }
  if (left > 0) {
    ++counts.back();
  }
  return counts;
}

}  // namespace

PositionRange block_range(const ModelGraph& graph, const StageLayout& stage, int chunk) {
  // The longest run of one template is what repeats; a chunk has at most one segment before and one
  // after it.
  PositionRange best{stage.begin(chunk), stage.begin(chunk)};
  int first = stage.begin(chunk);
  const auto form = [&](int position) {
    return graph.segments[static_cast<std::size_t>(stage.segment(position))].form;
  };
  for (int position = first; position < stage.end(chunk); ++position) {
    if (form(position) != form(first)) {
      first = position;
    }
    if (position + 1 - first > best.last - best.first) {
      best = {first, position + 1};
    }
  }
  return best;
}

StageLayout stage_layout(const Scenario& scenario,
                         const ModelGraph& graph,
                         const Schedule& schedule,
                         int pipeline_coordinate) {
  StageLayout stage;
  stage.coordinate = pipeline_coordinate;
  stage.chunk_begin.push_back(0);
  const bool transformer = graph.model.family == ModelFamily::kTransformer;
  const std::int32_t stages = schedule.stages();
  const auto segments = static_cast<std::int32_t>(graph.segments.size());
  const std::int32_t outside = transformer ? 1 : 0;
  const std::vector<std::int64_t> counts =
      layers_per_stage(scenario, segments - 2 * outside, stages);
  for (std::int32_t chunk = 0; chunk < schedule.chunks; ++chunk) {
    const std::int32_t number = schedule.stage_of(pipeline_coordinate, chunk);
    std::int64_t first = outside;
    for (std::int32_t before = 0; before < number; ++before) {
      first += counts[static_cast<std::size_t>(before)];
    }
    if (number == 0 && transformer) {
      stage.segments.push_back(0);
    }
    for (std::int64_t i = 0; i < counts[static_cast<std::size_t>(number)]; ++i) {
      stage.segments.push_back(static_cast<std::int32_t>(first + i));
    }
    if (number + 1 == stages && transformer) {
      stage.segments.push_back(segments - 1);
    }
    stage.has_embedding = stage.has_embedding || number == 0;
    stage.has_head = stage.has_head || number + 1 == stages;
    stage.chunk_begin.push_back(static_cast<std::int32_t>(stage.segments.size()));
  }
  stage.tied_across_stages =
      transformer && graph.model.tied_embeddings && stage.has_embedding != stage.has_head;
  return stage;
}

}  // namespace lockstep
