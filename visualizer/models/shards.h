// Shards: units of sharded parameters on one rank: when each is put together from its shards, used
// and taken apart again, and when its gradients are whole and reduced to a shard.
//
//     const TraceIndex index(plan, step);
//     const Shards shards(index, rank);
//     for (const ShardUnit& unit : shards.units())
//       for (const ShardInterval& it : unit.parameters) box(it.begin, it.end, it.stage);
//     const std::vector<ShardState> now = shards.state(cursor);   // one for each unit
//
// Units, groups and intervals are read from the plan's operations. What it is not: buckets of whole
// gradients (buckets.h) or the memory curve (memory_stack.h). It keeps nothing of plan and trace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/trace_index.h"
#include "visualizer/models/timeline.h"

namespace lockstep::view {

enum class ShardStage : std::uint8_t {
  kSharded,    ///< parameters: only this rank's shard. Gradients: none
  kGathering,  ///< the all-gather is on its way, or waits for other ranks
  kGathered,   ///< whole, waiting for use or in between uses
  kUsed,       ///< whole, from the first to the last operation of a pass that reads it
  kFull,       ///< whole gradients
  kReducing,   ///< being reduced to shards
  kReduced,    ///< this rank's shard of the gradients
};
std::string_view name_of(ShardStage stage);

struct ShardInterval {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  ShardStage stage = ShardStage::kSharded;
  Phase phase = Phase::kForward;
  std::int32_t microbatch = -1;
  std::uint32_t operation = kNoSpan;  ///< the collective; kNoSpan where there is none
};

struct ShardUnit {
  std::string name;                       ///< "h.3", "embedding+head"
  std::vector<std::int32_t> members;      ///< parameters of the model graph
  std::int32_t shards = 1;                ///< ranks that a gather puts together, at most
  std::int64_t gathered_bytes = 0;        ///< of the whole unit as it is gathered, with padding
  std::int64_t shard_bytes = 0;           ///< of one shard of it
  std::vector<ShardInterval> parameters;  ///< in order, apart; between them it is sharded
  std::vector<ShardInterval> gradients;   ///< in order, apart; between them there are none
};

struct ShardState {
  ShardStage parameters = ShardStage::kSharded;
  ShardStage gradients = ShardStage::kSharded;
  const ShardInterval* parameter_interval = nullptr;  ///< null while sharded
  const ShardInterval* gradient_interval = nullptr;
};

/// What a unit holds beyond its shards at the peak.
struct PeakHolder {
  std::int32_t unit = 0;
  std::int64_t parameter_bytes = 0;      ///< gathered parameters
  std::int64_t gradient_bytes = 0;       ///< whole or reduced
  std::int64_t communication_bytes = 0;  ///< gather outputs and reduction inputs
  std::int64_t bytes() const { return parameter_bytes + gradient_bytes + communication_bytes; }
};

/// Collectives of one kind in the step.
struct ShardTraffic {
  std::int64_t messages = 0;
  std::int64_t tensor_bytes = 0;  ///< of whole tensors (core/traffic.h)
  double sent_bytes = 0;          ///< by this rank
  Nanoseconds exposed = 0;        ///< compute stood still for the transfer (core/time_split.h)
  Nanoseconds waiting = 0;        ///< compute stood still because others had not arrived
};

class Shards {
 public:
  Shards(const TraceIndex& index, int rank);

  int rank() const { return rank_; }
  TimeWindow whole() const { return whole_; }
  /// Why there is nothing to see, in words; "" when there is.
  const std::string& why_empty() const { return why_empty_; }
  /// In the order of their first gather.
  const std::vector<ShardUnit>& units() const { return units_; }
  const ShardTraffic& gathers() const { return gathers_; }
  const ShardTraffic& reductions() const { return reductions_; }  ///< between replicas included
  /// Largest first. Everything else that is held at the peak belongs to no unit.
  const std::vector<PeakHolder>& peak_holders() const { return peak_holders_; }

  /// By unit.
  std::vector<ShardState> state(Nanoseconds time) const;

 private:
  friend class ShardReader;

  int rank_;
  TimeWindow whole_;
  std::string why_empty_;
  std::vector<ShardUnit> units_;
  ShardTraffic gathers_;
  ShardTraffic reductions_;
  std::vector<PeakHolder> peak_holders_;
};

}  // namespace lockstep::view
