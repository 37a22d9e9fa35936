// Lets the planner count one stage with few micro-batches and keeps the pieces that are not known
// yet. Internal to the Summarizer.
#pragma once

#include "core/planner/step_pieces.h"

namespace lockstep {

/// What is recorded, and where it goes.
struct Recording {
  const Scenario& scenario;
  Recompute recompute = Recompute::kNone;  ///< of all layers, whatever the scenario says
  const std::shared_ptr<const ModelGraph>& graph;
  const Walks& walks;
  std::int32_t coordinate = 0;    ///< pipeline rank
  bool blocks_are_known = false;  ///< in the segment's pieces, for these micro-batches
  SegmentPieces& segment;
  StagePieces& stage;
  FragmentStore& store;
  PlanBuilder& tables;  ///< of the store's fragments: takes the recording's mesh and graph
};
void record_pieces(const Recording& recording);

}  // namespace lockstep
