// Sums, maxima and averages element by element, and the conversions of the 16-bit types, against
// values written down by hand from IEEE 754 and from the definition of bfloat16.
#include "executor/reduce.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/scale.h"
#include "tests/support/typed_values.h"

namespace lockstep::exec {
namespace {

TEST_CASE("half precision of known numbers") {
  const std::pair<float, std::uint16_t> kKnown[] = {
      {0.0F, 0x0000},
      {-0.0F, 0x8000},
      {1.0F, 0x3c00},
      {-2.0F, 0xc000},
      {65504.0F, 0x7bff},
      {6.103515625e-05F, 0x0400},
      {0x1p-24F, 0x0001},
      {0x1.ff8p-15F, 0x03ff},
      {0.333251953125F, 0x3555},
  };
  for (const auto& [value, bits] : kKnown) {
    CHECK(float_to_half(value) == bits);
    CHECK(half_to_float(bits) == value);
  }
}

TEST_CASE("every half survives the way to fp32 and back") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const bool nan = (half & 0x7c00U) == 0x7c00U && (half & 0x3ffU) != 0;
    const float value = half_to_float(half);
    wrong += nan ? !std::isnan(value) || !std::isnan(half_to_float(float_to_half(value)))
                 : float_to_half(value) != half;
  }
  CHECK(wrong == 0);
}

TEST_CASE("fp32 rounds to the nearest half, ties to even") {
  CHECK(float_to_half(65519.996F) == 0x7bff);
  CHECK(float_to_half(65520.0F) == 0x7c00);             // ties to even: infinity
  CHECK(float_to_half(1.0F + 0x1p-11F) == 0x3c00);      // tie, even below
  CHECK(float_to_half(1.0F + 0x1.8p-10F) == 0x3c02);    // tie, even above
  CHECK(float_to_half(1.0F + 0x1.002p-11F) == 0x3c01);  // just above the tie
  CHECK(float_to_half(0x1p-25F) == 0x0000);             // tie between 0 and the smallest
  CHECK(float_to_half(0x1.8p-24F) == 0x0002);           // tie between 1 and 2
  CHECK(float_to_half(-std::numeric_limits<float>::infinity()) == 0xfc00);
  std::mt19937_64 random(test::test_seed());
  std::uniform_real_distribution<float> uniform(-70000, 70000);
  for (int i = 0; i < 10000; ++i) {
    const float value = std::ldexp(uniform(random), -static_cast<int>(random() % 40));
    const std::uint16_t half = float_to_half(value);
    const double error = std::abs(static_cast<double>(half_to_float(half)) - value);
    for (const int step : {-1, 1}) {
      const auto other = static_cast<std::uint16_t>(half + step);
      if (std::isfinite(half_to_float(half)) && std::isfinite(half_to_float(other))) {
        CHECK(error <= std::abs(static_cast<double>(half_to_float(other)) - value));
      }
    }
  }
}

TEST_CASE("fp32 rounds to the nearest bfloat16, ties to even") {
  CHECK(float_to_bfloat16(1.0F) == 0x3f80);
  CHECK(float_to_bfloat16(1.0F + 0x1p-8F) == 0x3f80);
  CHECK(float_to_bfloat16(1.0F + 0x1.8p-7F) == 0x3f82);
  CHECK(float_to_bfloat16(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(std::isnan(bfloat16_to_float(float_to_bfloat16(std::nanf("")))));
  CHECK(bfloat16_to_float(0xc2f7) == -123.5F);
}

TEST_CASE("a sum takes its terms in order") {
  // 2^53 + 1 + 1: from the left both ones are lost, from the right none.
  const double big = 0x1p53;
  const double one = 1;
  double sum = 0;
  const void* const from_left[] = {&big, &one, &one};
  reduce_in_order(Reduction::kSum, DType::kFp64, &sum, from_left, 1);
  CHECK(sum == 0x1p53);
  const void* const from_right[] = {&one, &one, &big};
  reduce_in_order(Reduction::kSum, DType::kFp64, &sum, from_right, 1);
  CHECK(sum == 0x1p53 + 2);
}

TEST_CASE("16-bit sums are rounded once, pairs at every step") {
  const std::uint16_t big = float_to_bfloat16(256);
  const std::uint16_t one = float_to_bfloat16(1);
  std::uint16_t sum = 0;
  const void* const all[] = {&big, &one, &one};
  reduce_in_order(Reduction::kSum, DType::kBf16, &sum, all, 1);
  CHECK(bfloat16_to_float(sum) == 258);
  reduce_pair(Reduction::kSum, DType::kBf16, &sum, {&big}, {&one}, 1);
  reduce_pair(Reduction::kSum, DType::kBf16, &sum, {&sum}, {&one}, 1);
  CHECK(bfloat16_to_float(sum) == 256);
}

TEST_CASE("integers wrap, their averages are cut towards zero") {
  const std::int32_t a = std::numeric_limits<std::int32_t>::max();
  const std::int32_t b = 1;
  std::int32_t out = 0;
  const void* const both[] = {&a, &b};
  reduce_in_order(Reduction::kSum, DType::kInt32, &out, both, 1);
  CHECK(out == std::numeric_limits<std::int32_t>::min());
  const std::int32_t c = -4;
  const void* const others[] = {&c, &b};
  reduce_in_order(Reduction::kAverage, DType::kInt32, &out, others, 1);
  CHECK(out == -1);
  const std::uint8_t d = 200;
  std::uint8_t small = 0;
  const void* const bytes[] = {&d, &d};
  reduce_in_order(Reduction::kSum, DType::kUint8, &small, bytes, 1);
  CHECK(small == 144);
}

TEST_CASE("a maximum with a NaN is NaN, wherever it stands") {
  const float nan = std::nanf("");
  const float one = 1;
  float out = 0;
  const void* const last[] = {&one, &nan};
  reduce_in_order(Reduction::kMax, DType::kFp32, &out, last, 1);
  CHECK(std::isnan(out));
  const void* const first[] = {&nan, &one};
  reduce_in_order(Reduction::kMax, DType::kFp32, &out, first, 1);
  CHECK(std::isnan(out));
}

TEST_CASE("an average is the sum of terms that were scaled beforehand, to the bit") {
  // As DDP divides before its sum (torch/csrc/distributed/c10d/reducer.cpp, mark_variable_ready:
  // the gradient times 1 / world size goes into the bucket), so that it equals FSDP's average.
  const double first = 0.1;
  const double second = 0.7;
  const double last = 1e-3;
  const double third = 1.0 / 3;
  const double scaled[] = {first * third, second * third, last * third};
  const void* const raw[] = {&first, &second, &last};
  const void* const before[] = {&scaled[0], &scaled[1], &scaled[2]};
  double average = 0;
  double sum = 0;
  reduce_in_order(Reduction::kAverage, DType::kFp64, &average, raw, 1);
  reduce_in_order(Reduction::kSum, DType::kFp64, &sum, before, 1);
  CHECK(average == sum);
  CHECK(average != ((first + second) + last) / 3);  // the values tell the two apart
  const double factor = factor_of_terms(Reduction::kAverage, DType::kFp64, 3);
  reduce_pair(Reduction::kAverage, DType::kFp64, &sum, {&first, factor}, {&second, factor}, 1);
  reduce_pair(Reduction::kAverage, DType::kFp64, &sum, {&sum}, {&last, factor}, 1);
  CHECK(average == sum);
}

TEST_CASE("long reductions equal a plain loop, bit for bit, also in place") {
  std::mt19937_64 random(test::test_seed());
  std::normal_distribution<float> normal;
  for (const std::int64_t count : {1, 1023, 1024, 1025, 5000}) {
    std::vector<std::vector<float>> inputs(3, std::vector<float>(static_cast<std::size_t>(count)));
    for (auto& input : inputs) {
      for (float& value : input) {
        value = normal(random);
      }
    }
    std::vector<float> expected(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const float third = 1.0F / 3;
      expected[i] = (inputs[0][i] * third + inputs[1][i] * third) + inputs[2][i] * third;
    }
    const void* const all[] = {inputs[0].data(), inputs[1].data(), inputs[2].data()};
    reduce_in_order(Reduction::kAverage, DType::kFp32, inputs[1].data(), all, count);
    CHECK(inputs[1] == expected);
  }
}

}  // namespace
}  // namespace lockstep::exec
