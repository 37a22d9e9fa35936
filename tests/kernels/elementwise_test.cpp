#include "kernels/cpu/elementwise.h"

#include "tests/kernels/numeric.h"

namespace lockstep {
namespace {

using kernels::cpu::best;
using kernels::cpu::Bf16;
using kernels::cpu::Elementwise;
using kernels::cpu::Fp16;
using kernels::cpu::kernels_at;

TEST_CASE("add, scale and add_scaled work in place and on any length") {
  const Elementwise<float>& kernels = best<Elementwise<float>>();
  for (std::int64_t n = 0; n < 40; ++n) {
    const std::vector<float> a = normal_numbers<float>(n, 1);
    const std::vector<float> b = normal_numbers<float>(n, 2);
    std::vector<float> y = a;
    kernels.add(y.data(), b.data(), y.data(), n);
    std::vector<float> z = a;
    kernels.scale(z.data(), 0.25F, z.data(), n);
    std::vector<float> w = a;
    kernels.add_scaled(b.data(), 2.0F, w.data(), n);
    for (std::size_t i = 0; i < a.size(); ++i) {
      REQUIRE(y[i] == a[i] + b[i]);
      REQUIRE(z[i] == a[i] * 0.25F);
      REQUIRE(w[i] == a[i] + b[i] * 2.0F);
    }
  }
}

TEST_CASE("unscaling finds an infinity or a NaN in every place") {
  for (const auto level : levels_here()) {
    const Elementwise<float>& kernels = kernels_at<Elementwise<float>>(level);
    for (std::size_t place = 0; place < 37; ++place) {
      std::vector<float> x = normal_numbers<float>(37, 1);
      CHECK_FALSE(kernels.unscale_and_check(x.data(), 0.5F, 37));
      CHECK(x == [] {
        std::vector<float> half = normal_numbers<float>(37, 1);
        for (float& value : half) {
          value *= 0.5F;
        }
        return half;
      }());
      x[place] = place % 2 == 0 ? std::numeric_limits<float>::infinity()
                                : std::numeric_limits<float>::quiet_NaN();
      CHECK(kernels.unscale_and_check(x.data(), 0.5F, 37));
    }
  }
}

TEST_CASE("a sum of squares of floats has the accuracy and the bits of doubles, at every level") {
  const std::vector<float> x = normal_numbers<float>(100003, 1);
  long double exact = 0;
  for (const float value : x) {
    exact += static_cast<long double>(value) * static_cast<long double>(value);
  }
  const double sum = best<Elementwise<float>>().sum_squares(x.data(), 100003);
  CHECK(std::fabs(sum / static_cast<double>(exact) - 1) < 1e-13);
  for (const auto level : levels_here()) {
    CHECK(kernels_at<Elementwise<float>>(level).sum_squares(x.data(), 100003) == sum);
  }
}

TEST_CASE("bfloat16 rounds to nearest even and keeps infinities and NaN") {
  const Elementwise<float>& kernels = best<Elementwise<float>>();
  const std::vector<float> x = {1.0F,
                                1.00390625F,
                                1.01171875F,
                                -3.14159265F,
                                3.4e38F,
                                std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::quiet_NaN()};
  std::vector<Bf16> narrow(x.size());
  std::vector<float> wide(x.size());
  kernels.to_bf16(x.data(), 1.0F, narrow.data(), 7);
  kernels.from_bf16(narrow.data(), 1.0F, wide.data(), 7);
  CHECK(wide[0] == 1.0F);
  CHECK(wide[1] == 1.0F);       // halfway between 1 and 1.0078125: the even one
  CHECK(wide[2] == 1.015625F);  // halfway between 1.0078125 and 1.015625
  CHECK(wide[3] == -3.140625F);
  CHECK(std::isinf(wide[4]));  // above the largest finite one (3.3895e38) by more than half
  CHECK(std::isinf(wide[5]));
  CHECK(std::isnan(wide[6]));
}

/// The value of 16 bits by IEEE 754's definition of binary16.
double value_of_half(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31U);
  const double fraction = static_cast<double>(bits & 1023U) / 1024;
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  return exponent == 0 ? sign * std::ldexp(fraction, -14)
                       : sign * std::ldexp(1 + fraction, exponent - 15);
}

TEST_CASE("every finite half survives the way to float and back, and ties round to even") {
  const Elementwise<float>& kernels = best<Elementwise<float>>();
  for (unsigned bits = 0; bits < 0x7c00U; ++bits) {
    Fp16 half{static_cast<std::uint16_t>(bits)};
    float value = 0;
    kernels.from_fp16(&half, 1.0F, &value, 1);
    REQUIRE(static_cast<double>(value) == value_of_half(bits));
    kernels.to_fp16(&value, 1.0F, &half, 1);
    REQUIRE(half.bits == bits);
    const auto tie = static_cast<float>((value_of_half(bits) + value_of_half(bits + 1)) / 2);
    kernels.to_fp16(&tie, -1.0F, &half, 1);
    REQUIRE(half.bits == (0x8000U | (bits % 2 == 0 ? bits : bits + 1)));
  }
}

TEST_CASE("casts between float and double apply the factor in double") {
  const double x = 1.0 / 3;
  float narrow = 0;
  best<Elementwise<double>>().to_float(&x, 0.1, &narrow, 1);
  CHECK(narrow == static_cast<float>(x * 0.1));
  double wide = 0;
  best<Elementwise<float>>().to_double(&narrow, 3.0, &wide, 1);
  CHECK(wide == static_cast<double>(narrow) * 3);
}

}  // namespace
}  // namespace lockstep
