// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random
// numbers from a counter. A number depends on (key, element's global index) alone, so every
// sharding of a tensor draws the same numbers, and recomputation needs no saved state.
//
// Functions are static: files that are built once per instruction set must each have their own.
#pragma once

#include <cstdint>

namespace lockstep::kernels::cpu {

/// Which stream of random numbers. Ranks that must differ (data parallel) differ in the seed.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint32_t module = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t step = 0;
};

struct RandomBlock {
  std::uint32_t word[4] = {0, 0, 0, 0};
};

/// The block cipher of the paper: 10 rounds on a 128-bit counter under a 64-bit key.
static inline RandomBlock philox(RandomBlock counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter.word[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter.word[2];
    counter = {{static_cast<std::uint32_t>(b >> 32) ^ counter.word[1] ^ key0,
                static_cast<std::uint32_t>(b),
                static_cast<std::uint32_t>(a >> 32) ^ counter.word[3] ^ key1,
                static_cast<std::uint32_t>(a)}};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

/// Block `index` of the stream: the counter is (index, micro-batch and module, step).
static inline RandomBlock random_block(const RandomKey& key, std::uint64_t index) {
  const RandomBlock counter = {{static_cast<std::uint32_t>(index),
                                static_cast<std::uint32_t>(index >> 32) ^ (key.module << 8),
                                key.step,
                                key.micro_batch}};
  return philox(counter,
                static_cast<std::uint32_t>(key.seed),
                static_cast<std::uint32_t>(key.seed >> 32) ^ (key.module * 0x85EBCA6BU));
}

}  // namespace lockstep::kernels::cpu
