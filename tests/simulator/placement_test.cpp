#include "simulator/placement.h"

#include <vector>

#include "core/cluster_presets.h"
#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::sim;

namespace {

ClusterSpec nodes_of_eight(std::int64_t nodes) {
  ClusterSpec cluster = *find_cluster_preset("dgx-h100");
  cluster.nodes = nodes;
  return cluster;
}

GroupPlacement placed(std::int64_t nodes, const std::vector<int>& ranks) {
  return placement_of(nodes_of_eight(nodes), ranks);
}

/// members, nodes, most, least, sharing
GroupPlacement expected(int members, int nodes, int most, int least, int sharing) {
  return {members, nodes, most, least, sharing, 1};
}

}  // namespace

TEST_CASE("A group inside a node uses no network and shares none") {
  CHECK(placed(2, {8, 9, 10, 11}) == expected(4, 1, 4, 4, 1));
  CHECK(placed(2, {3}) == expected(1, 1, 1, 1, 1));
}

TEST_CASE("One member per node: as many groups share a node's cards as it has devices") {
  CHECK(placed(4, {0, 8, 16, 24}) == expected(4, 4, 1, 1, 8));
  CHECK(placed(4, {0, 4, 8, 12, 16, 20, 24, 28}) == expected(8, 4, 2, 2, 4));
}

TEST_CASE("A group of whole nodes has their cards for itself") {
  std::vector<int> all;
  for (int rank = 0; rank < 24; ++rank) {
    all.push_back(rank);
  }
  CHECK(placed(3, all) == expected(24, 3, 8, 8, 1));
}

TEST_CASE("A group that straddles nodes unevenly knows its fullest and its emptiest") {
  CHECK(placed(2, {5, 6, 7, 8}) == expected(4, 2, 3, 1, 2));
  CHECK(placed(3, {6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}) == expected(11, 3, 8, 1, 1));
}
