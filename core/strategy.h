// StrategySpec: how the work is split over ranks. One field per dimension; the planner alone gives
// these words a meaning (DESIGN.md, invariant 1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/limits.h"
#include "core/planner/schedule/schedule.h"
#include "core/problems.h"

namespace lockstep {

enum class DataKind : std::uint8_t { kDp, kDdp, kZero1, kZero2, kZero3, kFsdp, kHsdp };
enum class ZeroFlavour : std::uint8_t { kPaper, kMegatron, kDeepSpeed, kZeroRedundancyOptimizer };
enum class WrapPolicy : std::uint8_t { kBlock, kRoot, kEveryModule };
enum class Reshard : std::uint8_t { kOn, kOff, kGroup };

struct DataStrategy {
  DataKind kind = DataKind::kDdp;
  std::int64_t degree = 1;     ///< dp: product of replicas and shards
  std::int64_t replicate = 1;  ///< hsdp: outer replicas; shard degree = degree / replicate
  ZeroFlavour flavour = ZeroFlavour::kPaper;  ///< zero1..3 only

  // DDP (PyTorch: torch.nn.parallel.DistributedDataParallel).
  std::optional<double> bucket_mib;  ///< bucket_cap_mb; unset = 25 with a first bucket of 1
  bool ideal = false;  ///< even buckets from the first iteration on, no first-iteration quirks
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool gradient_as_bucket_view = false;
  bool no_sync = true;            ///< accumulate without reduction in all but the last micro-batch
  bool broadcast_buffers = true;  ///< buffers (BatchNorm statistics) from rank 0 before forward

  // FSDP2 (torch.distributed.fsdp.fully_shard), HSDP and ZeRO-3.
  WrapPolicy wrap = WrapPolicy::kBlock;
  Reshard reshard = Reshard::kOn;  ///< reshard_after_forward: True, False, or an int
  std::int64_t reshard_group = 0;  ///< the int
  bool backward_prefetch = true;
};

struct TensorStrategy {
  std::int64_t degree = 1;
  bool sequence_parallel = false;
  bool save_gathered_input = false;  ///< keep the gathered input instead of gathering it again
};

struct PipelineStrategy {
  std::int64_t degree = 1;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  std::int64_t chunks = 1;                     ///< virtual stages per rank
  std::vector<std::int64_t> layers_per_stage;  ///< uneven stages; empty = as even as possible
  std::string actions_csv;  ///< PyTorch action CSV text that replaces the schedule; empty = none
};

struct StrategySpec {
  DataStrategy data;
  TensorStrategy tensor;
  PipelineStrategy pipeline;
  std::int64_t context = 1;  ///< context parallel degree
  std::int64_t expert = 1;   ///< expert parallel degree: a second view of dp x cp

  std::int64_t world_size() const {
    return saturating_product({data.degree, tensor.degree, pipeline.degree, context});
  }
};

/// All problems of the strategy section by itself, with key paths below "strategy".
void validate(const StrategySpec& strategy, Problems& problems);

}  // namespace lockstep
