// Puts the sums of a step together from recorded pieces. Internal to the Summarizer.
#pragma once

#include "core/planner/step_pieces.h"
#include "core/planner/step_sums.h"

namespace lockstep {

/// What is put together, of what.
struct StepPlan {
  const StageForm& form;
  const StageKind& kind;
  std::int64_t every = 1;      ///< layers of which every how many-th is recomputed
  const StageWalk& walk;       ///< of a rank of this kind
  bool splits = false;         ///< its backwards
  bool many = false;           ///< micro-batches
  bool reduces_every = false;  ///< of the passes
  const StagePieces& stage;
  const SegmentPieces& kept;
  const SegmentPieces& dropped;  ///< of recomputed layers; the same as `kept` when all are alike
};

/// Whether all pieces are there that the step takes from `segment` and from its stage.
bool has_pieces(const StepPlan& plan, const SegmentPieces& segment);
bool has_form(const StepPlan& plan, const SegmentPieces& segment, SegmentForm form);
void put_together(const StepPlan& plan, StepSums& sums);

}  // namespace lockstep
