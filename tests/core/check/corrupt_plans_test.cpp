// Whatever is wrong with a plan, the check says so or passes; it never reads outside a table.
#include <algorithm>
#include <cstring>
#include <random>

#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// Overwrites 1, 2, 4 or 8 aligned bytes of the object with a small, a large or any number.
template <typename T>
void corrupt(T& object, std::mt19937_64& random) {
  const std::size_t size = std::min(sizeof(T), std::size_t{1} << (random() % 4));
  const std::size_t place = random() % (sizeof(T) / size) * size;
  const std::uint64_t values[] = {random() % 8, ~std::uint64_t{0} - random() % 8, random()};
  std::memcpy(reinterpret_cast<unsigned char*>(&object) + place, &values[random() % 3], size);
}

template <typename T>
void corrupt_one(std::vector<T>& list, std::mt19937_64& random) {
  if (!list.empty()) {
    corrupt(list[random() % list.size()], random);
  }
}

}  // namespace

TEST_CASE("plans with random bytes in operations, views, buffers and dependencies do not crash") {
  std::mt19937_64 random(test_seed());
  const Plan plan = two_stage_plan();
  int refused = 0;
  const int rounds = scaled(2'000);
  for (int round = 0; round < rounds; ++round) {
    INFO("seed " << test_seed() << " round " << round);
    Plan mutant = plan;
    Program& program =
        program_of(mutant, static_cast<int>(random() % 2), static_cast<int>(random() % 2));
    for (int i = 0; i < 2; ++i) {
      switch (random() % 5) {
        case 0:
          corrupt_one(mutant.buffers[random() % 2], random);
          break;
        case 1:
          corrupt_one(program.views, random);
          break;
        case 2:
          corrupt_one(program.dependencies, random);
          break;
        default:
          corrupt_one(program.operations, random);
      }
    }
    refused += check_plan(mutant).empty() ? 0 : 1;
  }
  // What is left alone: padding, layouts of buffers, phases, shapes, coarser order.
  CHECK(refused > rounds / 2);
}
