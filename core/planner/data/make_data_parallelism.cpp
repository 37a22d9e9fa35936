#include "core/check.h"
#include "core/error.h"
#include "core/planner/data/ddp.h"
#include "core/planner/data/fsdp.h"

namespace lockstep {

std::unique_ptr<DataParallelism> make_data_parallelism(const DataParallelInputs& inputs) {
  const DataStrategy& data = inputs.context.strategy().data;
  if (data.degree == 1) {
    return std::make_unique<ReplicatedParameters>(inputs);
  }
  switch (data.kind) {
    case DataKind::kDdp:
      return std::make_unique<Ddp>(inputs);
    case DataKind::kFsdp:
    case DataKind::kHsdp:
    case DataKind::kZero3:
      return std::make_unique<ShardedParameters>(inputs);
    default:
      throw NotSupportedError("planner", "data-parallel kind is not planned yet");
  }
}

}  // namespace lockstep
