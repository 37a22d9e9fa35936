#include "core/check/flag_agreement.h"

namespace lockstep {
namespace {

constexpr AxisMask kPipelineAxis = mask_of(Axis::kPipeline);

/// Whether stages `inner` are among `outer`; 0 = all stages.
bool stages_within(std::uint64_t inner, std::uint64_t outer) {
  return outer == 0 || (inner != 0 && (inner & ~outer) == 0);
}

}  // namespace

void FlagAgreement::reduce(const Communicator& communicator) {
  if ((communicator.axes & kPipelineAxis) != 0) {
    // Agreement within two different sets of stages is not agreement within both together, so only
    // one set is kept: the larger, else the newer.
    const bool keeps_old =
        (axes & kPipelineAxis) != 0 && stages_within(communicator.pipeline_coordinates, stages);
    stages = keeps_old ? stages : communicator.pipeline_coordinates;
  }
  axes |= communicator.axes;
}

bool FlagAgreement::covers(const Mesh& mesh, const Communicator& communicator) const {
  for (int number = 0; number < kAxisCount; ++number) {
    const Axis axis = static_cast<Axis>(number);
    const bool needed = (communicator.axes & mask_of(axis)) != 0 && mesh.size(axis) > 1;
    if (needed && (axes & mask_of(axis)) == 0) {
      return false;
    }
  }
  const bool crosses_stages =
      (communicator.axes & kPipelineAxis) != 0 && mesh.size(Axis::kPipeline) > 1;
  return !crosses_stages || stages_within(communicator.pipeline_coordinates, stages);
}

}  // namespace lockstep
