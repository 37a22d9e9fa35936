#include "executor/class_data.h"

#include <cmath>
#include <random>

#include "executor/work_call.h"

namespace lockstep::exec {
namespace {

constexpr std::int64_t kTrainingSamples = 8192;
constexpr std::int64_t kEvaluationSamples = 1024;
constexpr double kSpread = 2;  ///< of a cloud, where corners are 2 apart in a coordinate

/// In [0, 1); the standard leaves its distributions open, not its generators.
double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11U) * 0x1p-53;
}

/// By Box and Muller.
double normal(std::mt19937_64& random) {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2 * std::log(1 - uniform(random)));
  return radius * std::cos(kTwoPi * uniform(random));
}

}  // namespace

ClassData::ClassData(std::int64_t features, std::int64_t classes)
    : features_(features), classes_(classes) {}

std::int64_t ClassData::samples(bool evaluation) const {
  return evaluation ? kEvaluationSamples : kTrainingSamples;
}

void ClassData::copy(bool evaluation, std::int64_t index, const BatchRows& to) const {
  const std::int64_t number = (evaluation ? kTrainingSamples : 0) + index;
  const std::int64_t label = number % classes_;
  if (to.labels != nullptr) {
    to.labels->as<std::int64_t>()[to.first] = label;
  }
  if (to.inputs == nullptr) {
    return;
  }
  constexpr std::uint64_t kCornerSeeds = std::uint64_t{1} << 32;  // apart from those of samples
  std::mt19937_64 corner(kCornerSeeds + static_cast<std::uint64_t>(label));
  std::mt19937_64 point(static_cast<std::uint64_t>(number));
  with_real(to.inputs->dtype, [&]<typename T>(T*) {
    T* const x = to.inputs->as<T>() + to.first * features_;
    for (std::int64_t i = 0; i < features_; ++i) {
      x[i] = static_cast<T>((uniform(corner) < 0.5 ? -1 : 1) + kSpread * normal(point));
    }
  });
}

}  // namespace lockstep::exec
