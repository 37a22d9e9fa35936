#include "core/check/value_field.h"

#include <numeric>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/scale.h"

namespace lockstep {
namespace {

using field::Number;

TEST_CASE("the field's sums, products and fractions are those of integers modulo 2^61 - 1") {
  CHECK(field::add(field::kPrime - 1, 2) == 1);
  CHECK(field::subtract(1, 2) == field::kPrime - 1);
  // 2^61 = 1, so 2^60 * 2^60 = 2^120 = 2^(120 - 61) = 2^59.
  CHECK(field::multiply(Number{1} << 60U, Number{1} << 60U) == Number{1} << 59U);
  CHECK(field::multiply(field::fraction(3, 7), 7) == 3);
  CHECK(field::fraction(-1, 2) == field::subtract(0, field::inverse(2)));
  CHECK(field::power(3, 0) == 1);
  std::mt19937_64 random(test::test_seed());
  for (int i = 0; i < test::scaled(200); ++i) {
    const Number a = random() % field::kPrime;
    const Number b = random() % field::kPrime;
    const Number c = random() % field::kPrime;
    REQUIRE(field::multiply(a, field::add(b, c)) ==
            field::add(field::multiply(a, b), field::multiply(a, c)));
    REQUIRE((a == 0 || field::multiply(a, field::inverse(a)) == 1));
  }
}

TEST_CASE("parts of any partition add up to one, those with a gap or an overlap do not") {
  std::mt19937_64 random(test::test_seed());
  for (int i = 0; i < test::scaled(100); ++i) {
    const auto whole = static_cast<std::int64_t>(2 + random() % 50);
    std::int64_t at = 0;
    Number sum = 0;
    std::int64_t last = 0;
    while (at < whole) {
      last = at;
      at = std::min<std::int64_t>(whole, at + 1 + static_cast<std::int64_t>(random() % 7));
      sum = field::add(sum, field::part(last, at, whole));
    }
    REQUIRE(sum == 1);
    if (last > 0) {
      REQUIRE(field::subtract(sum, field::part(last, whole, whole)) != 1);
      REQUIRE(field::add(sum, field::part(0, last, whole)) != 1);
    }
  }
  // Only fractions count, so that rows and elements of rows agree.
  CHECK(field::part(1, 2, 4) == field::part(6, 12, 24));
}

TEST_CASE("hashes depend on every word and on the order of words") {
  const Number ab = field::Hash(1).add(2).add(3).number();
  CHECK(ab == field::Hash(1).add(2).add(3).number());
  CHECK(ab != field::Hash(1).add(3).add(2).number());
  CHECK(ab != field::Hash(2).add(2).add(3).number());
  CHECK(ab != 0);
  CHECK(ab < field::kPrime);
}

}  // namespace
}  // namespace lockstep
