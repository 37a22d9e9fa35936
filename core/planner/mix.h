// One step of a 64-bit hash, for the planner's tables: good spread, no promise of stability.
#pragma once

#include <cstdint>

namespace lockstep {

/// `hash` with `value` mixed in (boost's hash_combine, then a multiplier of MurmurHash3's
/// finaliser).
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6U) + (hash >> 2U);
  return hash * 0xff51afd7ed558ccdULL;
}

}  // namespace lockstep
