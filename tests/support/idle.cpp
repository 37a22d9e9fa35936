#include "tests/support/idle.h"

namespace lockstep::test {

bool may_be_idle(const Plan& plan, const IdleOperation& idle) {
  const Section& section = plan.sections[static_cast<std::size_t>(idle.section)];
  const Operation& op =
      section.programs[static_cast<std::size_t>(idle.class_index)].operations[idle.operation];
  const bool of_buffers = plan.graph->model.mlp_norm != MlpNormKind::kNone &&
                          op.phase == Phase::kForward &&
                          (op.collective == Collective::kBroadcast || op.work == Work::kUnpack);
  const bool of_root = section.kind == SectionKind::kInit && op.work == Work::kUnpack;
  const bool of_copy = op.work == Work::kSumSquares && plan.graph->model.tied_embeddings &&
                       plan.mesh.size(Axis::kPipeline) > 1;
  return of_buffers || of_root || of_copy;
}

}  // namespace lockstep::test
