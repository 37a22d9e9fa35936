// How much random testing: scripts/test takes a tenth of a long run with a fixed seed,
// scripts/test --long all of it with a new seed, sanitizers less.
//
//     for (int i = 0; i < scaled(100); ++i)  // 100 by default, 1,000 with --long
//     std::mt19937_64 random(test_seed());
//
// Environment: LOCKSTEP_TEST_SCALE (default 1), LOCKSTEP_TEST_SEED (default 1; print it on
// failure).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace lockstep::test {

/// `count` times LOCKSTEP_TEST_SCALE, at least 1.
inline int scaled(int count) {
  const char* scale = std::getenv("LOCKSTEP_TEST_SCALE");
  return scale == nullptr ? count : std::max(1, static_cast<int>(std::stod(scale) * count));
}

inline std::uint64_t test_seed() {
  const char* seed = std::getenv("LOCKSTEP_TEST_SEED");
  return seed == nullptr ? 1 : std::stoull(seed);
}

}  // namespace lockstep::test
