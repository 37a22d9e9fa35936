// Ranges that the structure rule tests numbers of a plan against.
#pragma once

#include <cstdint>

#include "core/limits.h"

namespace lockstep {

/// Far above any buffer, and small enough that no sum or product of the checks overflows.
inline constexpr std::int64_t kMaxElements = kMaxActivationElements;

constexpr bool is_small(std::int64_t value, std::int64_t limit = kMaxElements) {
  return value >= -limit && value <= limit;
}

template <typename Enum>
constexpr bool in_range(Enum value, Enum last) {
  return static_cast<std::uint8_t>(value) <= static_cast<std::uint8_t>(last);
}

}  // namespace lockstep
