// record_collective: carries one collective out for real, on threads of this process, and keeps
// every move of data that its ranks made. Inputs are small whole numbers, of which every partial
// sum is exact in every element type, so that the result is checked bit by bit.
//
//     const CollectiveRecord record = record_collective(
//         {.collective = Collective::kAllReduce, .algorithm = Algorithm::kRing, .ranks = 5,
//          .elements = 1000});
//
// What it is not: a benchmark. Recording looks at the clock around every chunk.
#pragma once

#include <cstdint>

#include "core/collective_record.h"
#include "executor/communicator.h"

namespace lockstep::exec {

struct RecordedCollective {
  Collective collective = Collective::kAllReduce;  ///< or reduce_scatter, all_gather, broadcast,
                                                   ///< reduce
  Algorithm algorithm = Algorithm::kRing;
  DType dtype = DType::kFp32;  ///< fp64, fp32, bf16, fp16
  std::int32_t ranks = 2;      ///< 1 to kMostRecordedRanks
  std::int32_t root = 0;
  /// Of the whole message; where ranks hold a shard each it is padded to whole shards.
  std::int64_t elements = 0;
};

/// Sums of that many small numbers are exact in bf16.
inline constexpr std::int32_t kMostRecordedRanks = 16;

/// UsageError when the algorithm cannot carry the collective out; CheckFailedError when a result is
/// not what its inputs add up to.
CollectiveRecord record_collective(const RecordedCollective& wanted);

}  // namespace lockstep::exec
