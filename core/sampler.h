// Which samples of a data set each data-parallel rank reads, and in which order: the rule of
// torch.utils.data.DistributedSampler.
//
// The order of all samples (shuffled or not, the same on every rank) is dealt like cards: rank r
// takes positions r, r + N, r + 2N, ... So that all ranks get equally many, either the head of the
// order is repeated behind its end or its tail is dropped. Repeated samples count twice in metrics
// unless they are masked: see is_repeated.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

struct SamplerSpec {
  std::int64_t samples = 0;   ///< n
  std::int32_t replicas = 1;  ///< N: data-parallel ranks
  bool drop_last = false;
  bool shuffle = false;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;  ///< a new order each epoch: the generator is seeded with seed + epoch
};

/// Samples per rank: ceil(n / N), or floor(n / N) with drop_last.
std::int64_t sampler_length(const SamplerSpec& spec);

/// The order in which the samples are dealt: 0..n-1, or its permutation for (seed + epoch).
///
/// The permutation is a Fisher-Yates shuffle over std::mt19937_64, whose output the C++ standard
/// fixes to the bit, with our own bounded draw (std::shuffle and the distributions are free to
/// differ), so it is the same on every platform. It is not torch.randperm's.
void sampler_order(const SamplerSpec& spec, std::vector<std::int64_t>& order);

/// The samples of `rank`, in the order it reads them. Overwrites `indices`, keeps its memory.
void sampler_indices(const SamplerSpec& spec,
                     std::int32_t rank,
                     std::vector<std::int64_t>& indices);

/// Whether the `position`-th sample of `rank` is a copy that evens out the ranks.
constexpr bool is_repeated(const SamplerSpec& spec, std::int32_t rank, std::int64_t position) {
  return rank + position * spec.replicas >= spec.samples;
}

}  // namespace lockstep
