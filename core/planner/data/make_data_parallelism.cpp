#include "core/planner/data/ddp.h"
#include "core/planner/data/fsdp.h"
#include "core/planner/data/single_process.h"
#include "core/planner/data/zero.h"
#include "core/planner/data/zero_redundancy_optimizer.h"

namespace lockstep {

void reduce_loss(ProgramBuilder& b, const PlannerContext& context, const View& loss) {
  const AxisMask axes = kDataAxes & present_axes(context.mesh);
  const bool by_tokens = context.training().loss_mean == LossMean::kGlobalTokens;
  if (axes != 0) {
    b.collective(Collective::kAllReduce,
                 b.tables().communicator(axes, 0, true),
                 by_tokens ? Reduction::kSum : Reduction::kAverage,
                 1,
                 loss,
                 loss,
                 {.stream = Stream::kData, .flags = kControl});
  }
  b.host(Work::kReadScalar, Shape{{1}}, Views(&loss, 1), {}, {.flags = kHostSync});
}

std::unique_ptr<DataParallelism> make_data_parallelism(const DataParallelInputs& inputs) {
  const DataStrategy& data = inputs.context.strategy().data;
  if (data.degree == 1) {
    return std::make_unique<ReplicatedParameters>(inputs);
  }
  switch (data.kind) {
    case DataKind::kDp:
      return std::make_unique<SingleProcess>(inputs);
    case DataKind::kDdp:
      return std::make_unique<Ddp>(inputs);
    case DataKind::kZero1:
      if (data.flavour == ZeroFlavour::kZeroRedundancyOptimizer) {
        return std::make_unique<OwnerOptimizer>(inputs);
      }
      return std::make_unique<PartitionedOptimizer>(inputs);
    case DataKind::kZero2:
      return std::make_unique<PartitionedOptimizer>(inputs);
    case DataKind::kZero3:
    case DataKind::kFsdp:
    case DataKind::kHsdp:
      return std::make_unique<ShardedParameters>(inputs);
  }
  return nullptr;
}

}  // namespace lockstep
