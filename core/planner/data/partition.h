// Owner partition: whole parameters are dealt to ranks, as PyTorch's ZeroRedundancyOptimizer does.
//
// Each parameter's optimizer state and update live on one owner, which then broadcasts the updated
// parameter. Nothing is cut, so loads differ between ranks; cutting layouts are in core/layout.h.
//
//     OwnerPartition partition;
//     partition_by_size(elements, 2, partition);  // partition.owner[p]: rank that updates p
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {

struct OwnerPartition {
  std::vector<std::int32_t> owner;     ///< rank of each parameter
  std::vector<std::int32_t> sequence;  ///< parameters in the order they were dealt, largest first
  std::vector<std::int64_t> load;      ///< elements of each rank
  std::vector<std::pair<std::int64_t, std::int32_t>> heap;  ///< scratch: (load, rank)
};

/// Deals parameters, largest first (equal ones in their given order), each to the rank with the
/// least elements so far (the lowest of equal ones): ZeroRedundancyOptimizer._partition_parameters.
/// A greedy rule (LPT): its largest load is at most 4/3 of the best possible (Graham 1969).
/// Overwrites `partition` and keeps its memory.
void partition_by_size(std::span<const std::int64_t> elements,
                       std::int32_t ranks,
                       OwnerPartition& partition);

}  // namespace lockstep
