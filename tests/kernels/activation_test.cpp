#include "kernels/cpu/activation.h"

#include "tests/kernels/numeric.h"

namespace lockstep {
namespace {

using kernels::cpu::Activation;
using kernels::cpu::best;
using kernels::cpu::kernels_at;

double gelu_by_definition(double x) {
  const double pi = std::acos(-1.0);
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
}

constexpr std::int64_t kCount = 203;

TEST_CASE("GELU is GPT-2's tanh form, in double and in float") {
  std::vector<double> x;
  for (double value = -12; value <= 12; value += 0.01) {
    x.push_back(value);
  }
  std::vector<double> exact;
  for (const double value : x) {
    exact.push_back(gelu_by_definition(value));
  }
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<double> y = zeros<double>(n);
  best<Activation<double>>().gelu(x.data(), y.data(), n);
  CHECK(relative_error(y, exact) < 1e-15);
  const std::vector<float> x32 = converted<float>(x);
  std::vector<float> y32 = zeros<float>(n);
  best<Activation<float>>().gelu(x32.data(), y32.data(), n);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = gelu_by_definition(static_cast<double>(x32[i]));
    // tanh cancels below -3 where the reference itself loses digits.
    if (x[i] > -3) {
      CHECK(ulps(y32[i], expected) < 12);
    } else {
      CHECK(std::fabs(static_cast<double>(y32[i]) - expected) < 1e-7);
    }
  }
}

TEST_CASE("gradients of GELU, ReLU and SwiGLU match finite differences") {
  const Activation<double>& kernels = best<Activation<double>>();
  std::vector<double> x = normal_numbers<double>(kCount, 1);
  const std::vector<double> dy = normal_numbers<double>(kCount, 2);
  std::vector<double> y = zeros<double>(kCount);
  std::vector<double> dx = zeros<double>(kCount);
  kernels.gelu_grad(dy.data(), x.data(), dx.data(), kCount);
  require_gradient(x, dx, [&] {
    kernels.gelu(x.data(), y.data(), kCount);
    return dot(y, dy);
  });
  kernels.relu_grad(dy.data(), x.data(), dx.data(), kCount);
  require_gradient(x, dx, [&] {
    kernels.relu(x.data(), y.data(), kCount);
    return dot(y, dy);
  });
  const std::int64_t m = 7;
  const std::int64_t f = 29;  // m f = 203
  std::vector<double> gate_up = normal_numbers<double>(2 * m * f, 3);
  std::vector<double> dgate_up = zeros<double>(2 * m * f);
  kernels.swiglu_grad(dy.data(), gate_up.data(), dgate_up.data(), m, f);
  require_gradient(gate_up, dgate_up, [&] {
    kernels.swiglu(gate_up.data(), y.data(), m, f);
    return dot(y, dy);
  });
}

TEST_CASE("SwiGLU is silu(gate) times up") {
  const std::vector<double> gate_up = {1.5, -2, 3, 0.25};  // one row: gates 1.5, -2; ups 3, 0.25
  std::vector<double> y = zeros<double>(2);
  best<Activation<double>>().swiglu(gate_up.data(), y.data(), 1, 2);
  CHECK(y[0] == Approx(1.5 / (1 + std::exp(-1.5)) * 3).epsilon(1e-14));
  CHECK(y[1] == Approx(-2 / (1 + std::exp(2.0)) * 0.25).epsilon(1e-14));
}

TEST_CASE("an activation has the same bits on every instruction set and wherever a shard is cut") {
  const std::vector<float> x = normal_numbers<float>(kCount, 4);
  std::vector<float> whole = zeros<float>(kCount);
  best<Activation<float>>().gelu(x.data(), whole.data(), kCount);
  for (const auto level : levels_here()) {
    for (std::int64_t cut = 1; cut < 40; ++cut) {
      std::vector<float> parts = zeros<float>(kCount);
      const Activation<float>& kernels = kernels_at<Activation<float>>(level);
      kernels.gelu(x.data(), parts.data(), cut);
      kernels.gelu(x.data() + cut, parts.data() + cut, kCount - cut);
      REQUIRE(parts == whole);
    }
  }
}

}  // namespace
}  // namespace lockstep
