// The largest values a scenario may hold. They are far above any real training run and small enough
// that every product the planner forms fits a signed 64-bit integer: a tensor has at most 2^42
// elements, all activations of a rank at most 2^56, a model at most 2^50 parameters. Specs outside
// the limits are refused by validate(); arithmetic that runs before validate() saturates.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace lockstep {

inline constexpr std::int64_t kMaxLayers = 10'000;
inline constexpr std::int64_t kMaxHidden = 1 << 20;
inline constexpr std::int64_t kMaxHeads = 1 << 14;
inline constexpr std::int64_t kMaxHeadDim = 1 << 14;
inline constexpr std::int64_t kMaxIntermediate = 1 << 22;
inline constexpr std::int64_t kMaxVocab = 1 << 24;
inline constexpr std::int64_t kMaxExperts = 1 << 14;
inline constexpr std::int64_t kMaxSequence = std::int64_t{1} << 27;
inline constexpr std::int64_t kMaxMlpWidths = 1'000;  ///< entries of ModelSpec::widths
inline constexpr std::int64_t kMaxParameters = std::int64_t{1} << 50;

inline constexpr std::int64_t kMaxMicroBatch = 1 << 20;   ///< samples
inline constexpr std::int64_t kMaxAccumulate = 1 << 20;   ///< micro-batches
inline constexpr std::int64_t kMaxGlobalBatch = 1 << 30;  ///< samples
inline constexpr std::int64_t kMaxUnused = 10'000;        ///< entries of TrainingSpec::unused
inline constexpr std::int64_t kMaxTensorElements = std::int64_t{1} << 42;
inline constexpr std::int64_t kMaxActivationElements = std::int64_t{1} << 56;

inline constexpr std::int64_t kMaxWorldSize = 1 << 20;
inline constexpr std::int64_t kMaxStages = 1 << 14;  ///< pipeline degree x chunks
inline constexpr std::int64_t kMaxDeviceBytes = std::int64_t{1} << 50;
inline constexpr double kMaxRate = 1e21;  ///< FLOP/s or byte/s of one device or link

inline constexpr std::int64_t kSaturated = std::numeric_limits<std::int64_t>::max();

/// Product of non-negative factors, or kSaturated where it does not fit.
constexpr std::int64_t saturating_product(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  bool overflow = false;
  for (const std::int64_t factor : factors) {
    if (factor == 0) {
      return 0;
    }
    overflow = __builtin_mul_overflow(product, factor, &product) || overflow;
  }
  return overflow ? kSaturated : product;
}

/// Sum of non-negative terms, or kSaturated where it does not fit.
constexpr std::int64_t saturating_sum(std::initializer_list<std::int64_t> terms) {
  std::int64_t sum = 0;
  for (const std::int64_t term : terms) {
    if (__builtin_add_overflow(sum, term, &sum)) {
      return kSaturated;
    }
  }
  return sum;
}

}  // namespace lockstep
