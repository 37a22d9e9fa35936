#include "core/strategy.h"

#include "core/validate_fields.h"

namespace lockstep {
namespace {

bool is_zero(DataKind kind) {
  return kind == DataKind::kZero1 || kind == DataKind::kZero2 || kind == DataKind::kZero3;
}

bool is_fsdp(DataKind kind) {
  return kind == DataKind::kFsdp || kind == DataKind::kHsdp;
}

void validate_ddp_options(const DataStrategy& data, Problems& problems) {
  const bool ddp = data.kind == DataKind::kDdp;
  const bool ddp_inside =  // ZeroRedundancyOptimizer wraps a DDP model
      data.kind == DataKind::kZero1 && data.flavour == ZeroFlavour::kZeroRedundancyOptimizer;
  problems.require(!data.find_unused_parameters || ddp || ddp_inside,
                   "strategy.data.find_unused_parameters",
                   "is an option of ddp only");
  problems.require(!data.static_graph || ddp || ddp_inside,
                   "strategy.data.static_graph",
                   "is an option of ddp only");
  problems.require(!data.gradient_as_bucket_view || ddp || ddp_inside,
                   "strategy.data.gradient_as_bucket_view",
                   "is an option of ddp only");
  problems.require(!data.ideal || ddp, "strategy.data.ideal", "is an option of ddp only");
  problems.require(!data.ideal || !(data.find_unused_parameters || data.static_graph),
                   "strategy.data.ideal",
                   "has the same plan in every iteration: find_unused_parameters and static_graph "
                   "have no meaning there");
  problems.require(!(data.find_unused_parameters && data.static_graph),
                   "strategy.data.static_graph",
                   "and find_unused_parameters exclude each other: a static graph finds its unused "
                   "parameters once, in iteration 1");
  problems.require(!data.bucket_mib || data.kind == DataKind::kDdp || is_zero(data.kind),
                   "strategy.data.bucket_mib",
                   "is an option of ddp and zero1..3: fsdp and hsdp reduce by unit (wrap), dp "
                   "coalesces by its own rule");
}

void validate_flavour(const DataStrategy& data, Problems& problems) {
  const bool fits = [&] {
    switch (data.flavour) {
      case ZeroFlavour::kPaper:
        return true;
      case ZeroFlavour::kDeepSpeed:
        return is_zero(data.kind);
      case ZeroFlavour::kMegatron:
      case ZeroFlavour::kZeroRedundancyOptimizer:
        return data.kind == DataKind::kZero1;
    }
    return false;
  }();
  problems.require(fits,
                   "strategy.data.flavour",
                   "does not exist for this kind: paper and deepspeed have zero1, zero2, zero3; "
                   "megatron (distributed optimizer) and zero_redundancy_optimizer only zero1");
}

void validate_sharding(const DataStrategy& data, Problems& problems) {
  if (data.kind == DataKind::kHsdp) {
    const bool splits =
        data.replicate > 1 && data.degree > data.replicate && data.degree % data.replicate == 0;
    problems.require(splits,
                     "strategy.data.replicate",
                     "must divide strategy.data.degree and leave at least 2 replicas and 2 shards "
                     "for hsdp; without replicas it is fsdp, without shards ddp");
  } else {
    problems.require(data.replicate == 1, "strategy.data.replicate", "is an option of hsdp only");
  }
  problems.require(
      data.wrap == WrapPolicy::kBlock || is_fsdp(data.kind) || data.kind == DataKind::kZero3,
      "strategy.data.wrap",
      "is an option of fsdp, hsdp and zero3 only");
  problems.require(data.reshard == Reshard::kOn || is_fsdp(data.kind),
                   "strategy.data.reshard",
                   "is an option of fsdp and hsdp only");
}

/// reshard_after_forward=int: a non-trivial divisor of the shard group.
void validate_reshard_group(const DataStrategy& data, Problems& problems) {
  if (data.reshard != Reshard::kGroup) {
    problems.require(data.reshard_group == 0,
                     "strategy.data.reshard_group",
                     "is for strategy.data.reshard \"group\" only");
    return;
  }
  const std::int64_t shards = data.replicate > 0 ? data.degree / data.replicate : data.degree;
  const bool divides =
      data.reshard_group > 1 && data.reshard_group < shards && shards % data.reshard_group == 0;
  problems.require(divides,
                   "strategy.data.reshard_group",
                   "must divide the number of shards and be neither 1 (reshard \"off\") nor all of "
                   "them (reshard \"on\")");
}

}  // namespace

void validate(const StrategySpec& strategy, Problems& problems) {
  validate_fields("strategy", strategy, problems);
  validate_ddp_options(strategy.data, problems);
  validate_flavour(strategy.data, problems);
  validate_sharding(strategy.data, problems);
  validate_reshard_group(strategy.data, problems);
  problems.require(!strategy.tensor.sequence_parallel || strategy.tensor.degree > 1,
                   "strategy.tensor.sequence_parallel",
                   "needs strategy.tensor.degree > 1: it shards over the tensor-parallel ranks");
  problems.require(!strategy.tensor.save_gathered_input || strategy.tensor.sequence_parallel,
                   "strategy.tensor.save_gathered_input",
                   "needs strategy.tensor.sequence_parallel: otherwise nothing is gathered");
  problems.require(strategy.world_size() <= kMaxWorldSize,
                   "strategy",
                   "dp x tp x pp x cp is more than 1048576 ranks");
  problems.require(
      saturating_product({strategy.pipeline.degree, strategy.pipeline.chunks}) <= kMaxStages,
      "strategy.pipeline.chunks",
      "times strategy.pipeline.degree is more than 16384 stages");
}

}  // namespace lockstep
