#include "kernels/cpu/scalars.h"

#include "kernels/cpu/initialize.h"
#include "tests/kernels/numeric.h"

namespace lockstep {
namespace {

using kernels::cpu::clip_coefficient;
using kernels::cpu::initialize_normal;
using kernels::cpu::scaler_update;

TEST_CASE("the clip coefficient is torch's: at most 1, and NaN stays NaN") {
  CHECK(clip_coefficient(16, 2) == Approx(2 / (4 + 1e-6)).epsilon(1e-15));
  CHECK(clip_coefficient(1, 2) == 1);
  CHECK(clip_coefficient(0, 1) == 1);
  CHECK(std::isnan(clip_coefficient(std::nan(""), 1)));
}

TEST_CASE("the loss scale halves on overflow and doubles after an interval without") {
  float state[2] = {65536, 0};
  scaler_update(true, {2, 0.5, 3}, state);
  CHECK(state[0] == 32768);
  for (int step = 0; step < 2; ++step) {
    scaler_update(false, {2, 0.5, 3}, state);
    CHECK(state[0] == 32768);
  }
  scaler_update(false, {2, 0.5, 3}, state);
  CHECK(state[0] == 65536);
  CHECK(state[1] == 0);
}

TEST_CASE("initial numbers are normal, and a shard's are those of the whole") {
  const std::int64_t n = 100001;
  std::vector<double> whole = zeros<double>(n);
  initialize_normal(whole.data(), 0, n, 0.02, {9, 4, 0, 0});
  double mean = 0;
  double square = 0;
  double fourth = 0;
  for (const double x : whole) {
    mean += x / static_cast<double>(n);
    square += x * x / static_cast<double>(n);
    fourth += x * x * x * x / static_cast<double>(n);
  }
  CHECK(std::fabs(mean) < 5 * 0.02 / std::sqrt(static_cast<double>(n)));
  CHECK(std::sqrt(square) == Approx(0.02).epsilon(0.012));
  CHECK(fourth / (square * square) == Approx(3).epsilon(0.08));  // the kurtosis of a normal
  for (const std::int64_t first : {1, 2, 777, 50000}) {
    std::vector<double> shard = zeros<double>(33);
    initialize_normal(shard.data(), first, 33, 0.02, {9, 4, 0, 0});
    REQUIRE(std::equal(shard.begin(), shard.end(), whole.begin() + first));
  }
}

}  // namespace
}  // namespace lockstep
