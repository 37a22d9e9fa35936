#include "kernels/cpu/norm.h"

#include <algorithm>

#include "tests/kernels/numeric.h"

namespace lockstep {
namespace {

using kernels::cpu::best;
using kernels::cpu::HeadShape;
using kernels::cpu::kernels_at;
using kernels::cpu::Norm;
using kernels::cpu::NormGradients;
using kernels::cpu::NormParameters;
using kernels::cpu::NormShape;

constexpr NormShape kShape{5, 37};

/// x, weight, bias and dy of one case, with room for every output.
template <typename T>
struct Case {
  std::vector<T> x = converted<T>(normal_numbers<double>(kShape.m * kShape.h, 1));
  std::vector<T> weight = converted<T>(normal_numbers<double>(kShape.h, 2));
  std::vector<T> bias = converted<T>(normal_numbers<double>(kShape.h, 3));
  std::vector<T> dy = converted<T>(normal_numbers<double>(kShape.m * kShape.h, 4));
  std::vector<T> y = zeros<T>(kShape.m * kShape.h);
  std::vector<T> statistics = zeros<T>(2 * kShape.m);
  std::vector<T> dx = zeros<T>(kShape.m * kShape.h);
  std::vector<T> dweight = zeros<T>(kShape.h);
  std::vector<T> dbias = zeros<T>(kShape.h);

  NormParameters<T> parameters() const { return {weight.data(), bias.data(), nullptr, 1e-5}; }
  NormGradients<T> gradients(bool accumulate) {
    return {dx.data(), dweight.data(), dbias.data(), nullptr, accumulate};
  }
};

TEST_CASE("LayerNorm equals its definition, in float within 4e-7 of double") {
  Case<double> c;
  best<Norm<double>>().layer(c.x.data(), c.parameters(), c.y.data(), c.statistics.data(), kShape);
  std::vector<double> exact;
  for (std::int64_t row = 0; row < kShape.m; ++row) {
    const double* x = c.x.data() + row * kShape.h;
    double mean = 0;
    double variance = 0;
    for (std::int64_t j = 0; j < kShape.h; ++j) {
      mean += x[j] / static_cast<double>(kShape.h);
    }
    for (std::int64_t j = 0; j < kShape.h; ++j) {
      variance += (x[j] - mean) * (x[j] - mean) / static_cast<double>(kShape.h);
    }
    for (std::int64_t j = 0; j < kShape.h; ++j) {
      const auto i = static_cast<std::size_t>(j);
      exact.push_back((x[j] - mean) / std::sqrt(variance + 1e-5) * c.weight[i] + c.bias[i]);
    }
    CHECK(c.statistics[static_cast<std::size_t>(2 * row)] == Approx(mean).epsilon(1e-12));
  }
  CHECK(relative_error(c.y, exact) < 1e-14);
  Case<float> single;
  best<Norm<float>>().layer(
      single.x.data(), single.parameters(), single.y.data(), single.statistics.data(), kShape);
  CHECK(relative_error(single.y, exact) < 4e-7);
}

TEST_CASE("gradients of LayerNorm match finite differences, and accumulate where asked") {
  const Norm<double>& kernels = best<Norm<double>>();
  Case<double> c;
  const auto f = [&] {
    kernels.layer(c.x.data(), c.parameters(), c.y.data(), c.statistics.data(), kShape);
    return dot(c.y, c.dy);
  };
  f();
  const auto backward = [&](bool accumulate) {
    kernels.layer_grad(c.dy.data(),
                       {c.x.data(), c.statistics.data()},
                       c.weight.data(),
                       c.gradients(accumulate),
                       kShape);
  };
  backward(false);
  require_gradient(c.x, c.dx, f);
  require_gradient(c.weight, c.dweight, f);
  require_gradient(c.bias, c.dbias, f);
  const std::vector<double> once = c.dweight;
  f();
  backward(true);
  for (std::size_t j = 0; j < once.size(); ++j) {
    CHECK(c.dweight[j] == Approx(2 * once[j]).epsilon(1e-12));
  }
}

TEST_CASE("gradients of RMSNorm match finite differences") {
  const Norm<double>& kernels = best<Norm<double>>();
  Case<double> c;
  const auto f = [&] {
    kernels.rms(c.x.data(), c.parameters(), c.y.data(), c.statistics.data(), kShape);
    return dot(c.y, c.dy);
  };
  f();
  double squares = 0;
  for (std::size_t j = 0; j < static_cast<std::size_t>(kShape.h); ++j) {
    squares += c.x[j] * c.x[j] / static_cast<double>(kShape.h);
  }
  CHECK(c.y[0] == Approx(c.x[0] / std::sqrt(squares + 1e-5) * c.weight[0]).epsilon(1e-13));
  NormGradients<double> out = c.gradients(false);
  out.dbias = nullptr;
  kernels.rms_grad(c.dy.data(), {c.x.data(), c.statistics.data()}, c.weight.data(), out, kShape);
  require_gradient(c.x, c.dx, f);
  require_gradient(c.weight, c.dweight, f);
}

TEST_CASE("the norm of heads leaves values alone and has the gradients of finite differences") {
  const Norm<double>& kernels = best<Norm<double>>();
  const HeadShape heads{4, 2, 6};
  const std::int64_t m = 3;
  std::vector<double> x = normal_numbers<double>(m * heads.width(), 5);
  std::vector<double> query = normal_numbers<double>(heads.dim, 6);
  std::vector<double> key = normal_numbers<double>(heads.dim, 7);
  const std::vector<double> dy = normal_numbers<double>(m * heads.width(), 8);
  std::vector<double> y = zeros<double>(m * heads.width());
  std::vector<double> statistics = zeros<double>(m * 6);
  std::vector<double> dx = zeros<double>(m * heads.width());
  std::vector<double> dquery = zeros<double>(heads.dim);
  std::vector<double> dkey = zeros<double>(heads.dim);
  const NormParameters<double> parameters{query.data(), nullptr, key.data(), 1e-6};
  const auto f = [&] {
    kernels.heads(x.data(), parameters, y.data(), statistics.data(), m, heads);
    return dot(y, dy);
  };
  f();
  CHECK(y[static_cast<std::size_t>(heads.width()) - 1] ==
        x[static_cast<std::size_t>(heads.width()) - 1]);
  kernels.heads_grad(dy.data(),
                     {x.data(), statistics.data()},
                     parameters,
                     {dx.data(), dquery.data(), nullptr, dkey.data(), false},
                     m,
                     heads);
  require_gradient(x, dx, f);
  require_gradient(query, dquery, f);
  require_gradient(key, dkey, f);
}

TEST_CASE("a row's norm has the same bits alone, at any alignment and on every instruction set") {
  Case<float> c;
  best<Norm<float>>().layer(c.x.data(), c.parameters(), c.y.data(), c.statistics.data(), kShape);
  for (const auto level : levels_here()) {
    for (std::int64_t row = 0; row < kShape.m; ++row) {
      const float* from = c.x.data() + row * kShape.h;
      std::vector<float> moved = zeros<float>(row + kShape.h);
      std::copy(from, from + kShape.h, moved.begin() + row);
      std::vector<float> y = zeros<float>(kShape.h);
      std::vector<float> statistics = zeros<float>(2);
      kernels_at<Norm<float>>(level).layer(
          moved.data() + row, c.parameters(), y.data(), statistics.data(), {1, kShape.h});
      REQUIRE(std::equal(y.begin(), y.end(), c.y.begin() + row * kShape.h));
    }
  }
}

}  // namespace
}  // namespace lockstep
