// CollectiveRecord: one collective as it was carried out: what was asked for, and every move of
// data that answered it. executor/record_collective.h makes one, core/io/collective_io.h keeps one
// in a file, the stepper of the visualizer walks through one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/chunk_move.h"
#include "core/dtype.h"
#include "core/plan.h"

namespace lockstep {

struct CollectiveRecord {
  Collective collective = Collective::kAllReduce;
  std::string algorithm;  ///< "ring", "tree", "direct"
  DType dtype = DType::kFp32;
  std::int32_t ranks = 1;
  std::int32_t root = 0;  ///< broadcast, reduce
  /// The whole message; of all shards where members hold one each (all_gather, reduce_scatter).
  std::int64_t message_bytes = 0;
  /// From the moment when all were there until the last was done.
  Nanoseconds time = 0;
  std::vector<ChunkMove> moves;  ///< by step, then receiver; times since all were there

  bool is_sharded() const {
    return collective == Collective::kAllGather || collective == Collective::kReduceScatter;
  }
};

}  // namespace lockstep
