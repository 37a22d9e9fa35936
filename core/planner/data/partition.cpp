#include "core/planner/data/partition.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "core/check.h"

namespace lockstep {

void partition_by_size(std::span<const std::int64_t> elements,
                       std::int32_t ranks,
                       OwnerPartition& partition) {
  LOCKSTEP_CHECK(ranks >= 1, fmt::format("an owner partition over {} ranks", ranks));
  const auto count = elements.size();
  const auto size = [&](std::int32_t parameter) {
    return elements[static_cast<std::size_t>(parameter)];
  };

  partition.sequence.resize(count);
  std::iota(partition.sequence.begin(), partition.sequence.end(), 0);
  // The index as second key makes std::sort stable, which Python's sorted() is.
  std::sort(partition.sequence.begin(), partition.sequence.end(), [&](auto a, auto b) {
    return size(a) != size(b) ? size(a) > size(b) : a < b;
  });

  partition.owner.assign(count, 0);
  partition.load.assign(static_cast<std::size_t>(ranks), 0);
  // Ties go to the lowest rank, so with P parameters only the first P ranks can be reached.
  auto& heap = partition.heap;
  heap.clear();
  for (std::int32_t rank = 0; rank < ranks && heap.size() < count; ++rank) {
    heap.emplace_back(0, rank);
  }
  for (const std::int32_t parameter : partition.sequence) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    auto& [load, rank] = heap.back();
    load += size(parameter);
    partition.owner[static_cast<std::size_t>(parameter)] = rank;
    partition.load[static_cast<std::size_t>(rank)] = load;
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
}

}  // namespace lockstep
