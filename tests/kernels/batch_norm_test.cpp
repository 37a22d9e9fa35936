#include "kernels/cpu/batch_norm.h"

#include "tests/kernels/numeric.h"

namespace lockstep {
namespace {

using kernels::cpu::BatchNorm;
using kernels::cpu::BatchNormShape;
using kernels::cpu::best;

constexpr std::int64_t kRows = 9;
constexpr std::int64_t kChannels = 70;  // more than a strip
constexpr std::int64_t kCount = kRows * kChannels;

/// Forward on `ranks` equal parts of the rows whose statistics are summed.
std::vector<double> forward(const std::vector<double>& x,
                            const std::vector<double>& weight,
                            const std::vector<double>& bias,
                            std::int64_t ranks,
                            std::vector<double>& sums) {
  const BatchNorm<double>& kernels = best<BatchNorm<double>>();
  const BatchNormShape part{kRows / ranks, kChannels};
  sums = zeros<double>(2 * kChannels + 1);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<double> own = zeros<double>(2 * kChannels + 1);
    kernels.sums(x.data() + rank * part.m * kChannels, own.data(), part);
    for (std::size_t i = 0; i < own.size(); ++i) {
      sums[i] += own[i];
    }
  }
  std::vector<double> y = zeros<double>(kCount);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t at = rank * part.m * kChannels;
    kernels.apply(
        x.data() + at, sums.data(), {weight.data(), bias.data()}, y.data() + at, nullptr, part);
  }
  return y;
}

TEST_CASE(
    "batch norm over ranks equals batch norm of the whole, and finite differences its gradient") {
  const BatchNorm<double>& kernels = best<BatchNorm<double>>();
  std::vector<double> x = normal_numbers<double>(kCount, 1);
  std::vector<double> weight = normal_numbers<double>(kChannels, 2);
  std::vector<double> bias = normal_numbers<double>(kChannels, 3);
  const std::vector<double> dy = normal_numbers<double>(kCount, 4);
  std::vector<double> sums;
  const std::vector<double> whole = forward(x, weight, bias, 1, sums);
  CHECK(relative_error(forward(x, weight, bias, 3, sums), whole) < 1e-13);

  const BatchNormShape part{kRows / 3, kChannels};
  std::vector<double> global = zeros<double>(2 * kChannels);
  std::vector<std::vector<double>> locals;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const std::int64_t at = rank * part.m * kChannels;
    std::vector<double> local = zeros<double>(2 * kChannels);
    kernels.grad_sums(dy.data() + at, x.data() + at, sums.data(), local.data(), part);
    for (std::size_t i = 0; i < local.size(); ++i) {
      global[i] += local[i];
    }
    locals.push_back(local);
  }
  std::vector<double> dx = zeros<double>(kCount);
  std::vector<double> dweight = zeros<double>(kChannels);
  std::vector<double> dbias = zeros<double>(kChannels);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const std::int64_t at = rank * part.m * kChannels;
    kernels.grad_apply(dy.data() + at,
                       {x.data() + at, sums.data()},
                       {locals[static_cast<std::size_t>(rank)].data(), global.data()},
                       weight.data(),
                       {dx.data() + at, dweight.data(), dbias.data(), true},
                       part);
  }
  const auto f = [&] { return dot(forward(x, weight, bias, 1, sums), dy); };
  require_gradient(x, dx, f);
  require_gradient(weight, dweight, f);
  require_gradient(bias, dbias, f);
}

TEST_CASE(
    "running statistics move by a tenth, with the unbiased variance, and evaluation uses them") {
  const BatchNorm<double>& kernels = best<BatchNorm<double>>();
  const BatchNormShape shape{4, 1};
  const std::vector<double> x = {1, 2, 3, 6};  // mean 3, biased variance 3.5, unbiased 14 / 3
  std::vector<double> sums = zeros<double>(3);
  kernels.sums(x.data(), sums.data(), shape);
  CHECK(sums == std::vector<double>{12, 50, 4});
  const double weight = 2;
  const double bias = -1;
  std::vector<double> running = {0, 1};
  std::vector<double> y = zeros<double>(4);
  kernels.apply(x.data(), sums.data(), {&weight, &bias}, y.data(), running.data(), shape);
  CHECK(y[0] == Approx(-2 / std::sqrt(3.5 + 1e-5) * 2 - 1).epsilon(1e-14));
  CHECK(running[0] == Approx(0.3).epsilon(1e-14));
  CHECK(running[1] == Approx(0.9 + 14.0 / 30).epsilon(1e-14));
  kernels.evaluate(x.data(), running.data(), {&weight, &bias}, y.data(), shape);
  CHECK(y[3] == Approx((6 - 0.3) / std::sqrt(0.9 + 14.0 / 30 + 1e-5) * 2 - 1).epsilon(1e-14));
}

}  // namespace
}  // namespace lockstep
