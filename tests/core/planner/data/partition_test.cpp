#include "core/planner/data/partition.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/scale.h"

namespace lockstep {
namespace {

using Sizes = std::vector<std::int64_t>;

struct Shape {
  std::string name;
  std::int64_t elements;
};

/// Shapes of the rank's parameters in the order in which they were dealt, separated by blanks.
std::string shapes_of(const OwnerPartition& partition,
                      const std::vector<Shape>& shapes,
                      std::int32_t rank) {
  std::string text;
  for (const std::int32_t parameter : partition.sequence) {
    const auto index = static_cast<std::size_t>(parameter);
    if (partition.owner[index] == rank) {
      text += (text.empty() ? "" : " ") + shapes[index].name;
    }
  }
  return text;
}

/// Second algorithm, as ZeroRedundancyOptimizer writes it: a stable sort by size, then for each
/// parameter a scan for the rank with the smallest sum.
std::vector<std::int32_t> owners_by_scanning(const Sizes& sizes, std::int32_t ranks) {
  std::vector<std::size_t> sorted(sizes.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
    return sizes[a] > sizes[b];
  });
  Sizes sums(static_cast<std::size_t>(ranks), 0);
  std::vector<std::int32_t> owners(sizes.size());
  for (const std::size_t parameter : sorted) {
    const auto smallest = std::min_element(sums.begin(), sums.end());
    *smallest += sizes[parameter];
    owners[parameter] = static_cast<std::int32_t>(smallest - sums.begin());
  }
  return owners;
}

}  // namespace

TEST_CASE("the owner partition is that of ZeroRedundancyOptimizer") {
  const test::Golden golden = test::read_golden("owner_partition.csv");
  REQUIRE(golden.lines.size() == 3);
  const std::vector<Shape> shapes{{"256x64", 256 * 64},
                                  {"256", 256},
                                  {"64x256", 64 * 256},
                                  {"64", 64},
                                  {"32x64", 32 * 64},
                                  {"32", 32}};
  Sizes sizes;
  for (const Shape& shape : shapes) {
    sizes.push_back(shape.elements);
  }
  OwnerPartition partition;
  partition_by_size(sizes, 2, partition);
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    const std::string line = std::to_string(rank) + "," + shapes_of(partition, shapes, rank) + "," +
                             std::to_string(partition.load[index]);
    CHECK(line == golden.lines[index + 1]);
  }
}

TEST_CASE("with more ranks than parameters the last ranks own nothing") {
  OwnerPartition partition;
  partition_by_size(Sizes{5, 9, 5}, 4, partition);
  CHECK(partition.sequence == std::vector<std::int32_t>{1, 0, 2});
  CHECK(partition.owner == std::vector<std::int32_t>{1, 0, 2});
  CHECK(partition.load == Sizes{9, 5, 5, 0});
}

TEST_CASE("dealing from a heap equals scanning for the lightest rank, on random sizes") {
  std::mt19937_64 random(test::test_seed());
  OwnerPartition partition;
  for (int round = 0; round < test::scaled(500); ++round) {
    const auto ranks = static_cast<std::int32_t>(1 + random() % 20);
    Sizes sizes(random() % 40);
    for (std::int64_t& size : sizes) {
      size = static_cast<std::int64_t>(random() % 8);  // many ties, some empty parameters
    }
    CAPTURE(round, ranks, sizes);
    partition_by_size(sizes, ranks, partition);
    CHECK(partition.owner == owners_by_scanning(sizes, ranks));

    Sizes sums(static_cast<std::size_t>(ranks), 0);
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      sums[static_cast<std::size_t>(partition.owner[p])] += sizes[p];
    }
    CHECK(partition.load == sums);
    // A greedy deal never leaves two ranks further apart than one parameter.
    const auto [least, most] = std::minmax_element(sums.begin(), sums.end());
    const std::int64_t largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
    CHECK(*most - *least <= largest);
  }
}

}  // namespace lockstep
