#include "kernels/cpu/dropout.h"

#include <numeric>

#include "tests/kernels/numeric.h"

namespace lockstep {
namespace {

using kernels::cpu::best;
using kernels::cpu::Dropout;
using kernels::cpu::DropoutBox;
using kernels::cpu::kernels_at;
using kernels::cpu::philox;
using kernels::cpu::RandomKey;

constexpr RandomKey kKey{42, 3, 1, 7};

std::vector<std::uint8_t> mask_of(const RandomKey& key,
                                  const DropoutBox& box,
                                  kernels::cpu::Level level = kernels::cpu::Level::kBaseline) {
  const auto count = static_cast<std::size_t>(box.rows * box.columns);
  const std::vector<float> x(count, 1);
  std::vector<float> y(count);
  std::vector<std::uint8_t> mask(count);
  kernels_at<Dropout<float>>(level).dropout(x.data(), 0.25, key, y.data(), mask.data(), box);
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(y[i] == (mask[i] != 0 ? static_cast<float>(1 / 0.75) : 0.0F));
  }
  return mask;
}

TEST_CASE("Philox gives the known answers of its authors") {
  // Random123's kat_vectors, philox4x32 10 rounds.
  const auto zero = philox({{0, 0, 0, 0}}, 0, 0);
  CHECK(zero.word[0] == 0x6627e8d5U);
  CHECK(zero.word[1] == 0xe169c58dU);
  CHECK(zero.word[2] == 0xbc57ac4cU);
  CHECK(zero.word[3] == 0x9b00dbd8U);
  const auto pi =
      philox({{0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}}, 0xa4093822U, 0x299f31d0U);
  CHECK(pi.word[0] == 0xd16cfe09U);
  CHECK(pi.word[1] == 0x94fdccebU);
  CHECK(pi.word[2] == 0x5001e420U);
  CHECK(pi.word[3] == 0x24126ea1U);
}

TEST_CASE(
    "dropout drops its share, and differently for another seed, module, micro-batch or step") {
  const DropoutBox box{100, 1000, 1000, 0, 0};
  const std::vector<std::uint8_t> mask = mask_of(kKey, box);
  const auto kept = std::accumulate(mask.begin(), mask.end(), std::int64_t{0});
  // 100,000 draws of 0.75: standard deviation 137.
  CHECK(std::abs(kept - 75000) < 5 * 137);
  for (const RandomKey& other : {RandomKey{43, 3, 1, 7},
                                 RandomKey{42, 4, 1, 7},
                                 RandomKey{42, 3, 2, 7},
                                 RandomKey{42, 3, 1, 8},
                                 RandomKey{42ULL << 32, 3, 1, 7}}) {
    const std::vector<std::uint8_t> unlike = mask_of(other, box);
    std::int64_t equal = 0;
    for (std::size_t i = 0; i < mask.size(); ++i) {
      equal += mask[i] == unlike[i] ? 1 : 0;
    }
    // Independent masks agree with probability 0.625: standard deviation 153.
    CHECK(std::abs(equal - 62500) < 5 * 153);
  }
}

TEST_CASE("shards of a tensor, by rows or by columns, drop what the whole drops") {
  const std::int64_t columns = 75;
  for (const auto level : levels_here()) {
    const std::vector<std::uint8_t> whole = mask_of(kKey, {8, columns, columns, 0, 0});
    const std::vector<std::uint8_t> rows = mask_of(kKey, {3, columns, columns, 5, 0}, level);
    CHECK(std::equal(rows.begin(), rows.end(), whole.begin() + 5 * columns));
    const std::vector<std::uint8_t> right = mask_of(kKey, {8, 25, columns, 0, 50}, level);
    for (std::int64_t i = 0; i < 8 * 25; ++i) {
      REQUIRE(right[static_cast<std::size_t>(i)] ==
              whole[static_cast<std::size_t>(i / 25 * columns + 50 + i % 25)]);
    }
  }
}

TEST_CASE("the gradient of dropout passes where the mask is 1") {
  const std::vector<double> dy = {1, 2, 3};
  const std::vector<std::uint8_t> mask = {1, 0, 1};
  std::vector<double> dx = zeros<double>(3);
  best<Dropout<double>>().dropout_grad(dy.data(), mask.data(), 0.5, dx.data(), 3);
  CHECK(dx == std::vector<double>{2, 0, 6});
}

}  // namespace
}  // namespace lockstep
