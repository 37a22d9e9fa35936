#include "core/mesh.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/scale.h"

using namespace lockstep;

namespace {

using Groups = std::vector<std::vector<int>>;

constexpr Axis kAxes[] = {
    Axis::kPipeline, Axis::kDataReplica, Axis::kData, Axis::kContext, Axis::kTensor};
constexpr AxisMask kAllAxes = (1U << kAxisCount) - 1;

Mesh mesh_of(int pipeline, int data, int tensor) {
  Mesh mesh;
  mesh.set(Axis::kPipeline, pipeline);
  mesh.set(Axis::kData, data);
  mesh.set(Axis::kTensor, tensor);
  return mesh;
}

Mesh random_mesh(std::mt19937_64& random) {
  Mesh mesh;
  for (const Axis axis : kAxes) {
    mesh.set(axis, std::uniform_int_distribution<int>(1, 4)(random));
  }
  return mesh;
}

}  // namespace

TEST_CASE("Groups are those in the docstring of Megatron-LM's initialize_model_parallel") {
  // megatron/core/parallel_state.py: 16 GPUs, tensor-model-parallel 2, pipeline-model-parallel 4.
  const Mesh mesh = mesh_of(4, 2, 2);
  CHECK(mesh.world_size() == 16);
  CHECK(mesh.groups(mask_of(Axis::kData)) ==
        Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}});
  CHECK(mesh.groups(mask_of(Axis::kTensor)) ==
        Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}});
  CHECK(mesh.groups(mask_of(Axis::kPipeline)) ==
        Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}});
  // The model-parallel group of that function: all stages and tensor ranks of one replica.
  CHECK(mesh.groups(mask_of(Axis::kPipeline) | mask_of(Axis::kTensor)) ==
        Groups{{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}});
}

TEST_CASE("Groups of 8 ranks cut 2 x 2 x 2 are as written by hand") {
  const Mesh mesh = mesh_of(2, 2, 2);
  CHECK(mesh.groups(mask_of(Axis::kTensor)) == Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(mesh.groups(mask_of(Axis::kData)) == Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(mesh.groups(mask_of(Axis::kPipeline)) == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(mesh.groups(kDataAxes | mask_of(Axis::kTensor)) == Groups{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(mesh.groups(kAllAxes) == Groups{{0, 1, 2, 3, 4, 5, 6, 7}});
  CHECK(mesh.groups(0) == Groups{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}});
  CHECK(mesh.coordinate(6, Axis::kPipeline) == 1);
  CHECK(mesh.coordinate(6, Axis::kData) == 1);
  CHECK(mesh.coordinate(6, Axis::kTensor) == 0);
  CHECK(mesh.coordinate(6, Axis::kNone) == 0);
}

TEST_CASE("Groups of 16 ranks with tp 2, pp 2 and dp 4 are as written by hand") {
  const Mesh mesh = mesh_of(2, 4, 2);
  CHECK(mesh.groups(mask_of(Axis::kData)) ==
        Groups{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}});
  CHECK(mesh.groups(mask_of(Axis::kPipeline)) ==
        Groups{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}});
}

TEST_CASE("Context parallel ranks lie between tensor and data parallel ones") {
  // Megatron-LM's order tp-cp-ep-dp-pp: with tp 2, cp 2, dp 2 the cp groups have stride tp.
  Mesh mesh = mesh_of(1, 2, 2);
  mesh.set(Axis::kContext, 2);
  CHECK(mesh.groups(mask_of(Axis::kContext)) == Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(mesh.groups(mask_of(Axis::kData)) == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(mesh.groups(kDataAxes | mask_of(Axis::kContext)) == Groups{{0, 2, 4, 6}, {1, 3, 5, 7}});
}

TEST_CASE("Hybrid sharding puts shards on neighbours and replicas outside") {
  // torch.distributed.init_device_mesh("cuda", (2, 4), mesh_dim_names=("replicate", "shard")).
  Mesh mesh;
  mesh.set(Axis::kDataReplica, 2);
  mesh.set(Axis::kData, 4);
  CHECK(mesh.groups(mask_of(Axis::kData)) == Groups{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(mesh.groups(mask_of(Axis::kDataReplica)) == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(mesh.groups(kDataAxes) == Groups{{0, 1, 2, 3, 4, 5, 6, 7}});
  CHECK(mesh.index(kDataAxes, 6) == 6);
  CHECK(mesh.index(mask_of(Axis::kDataReplica), 6) == 1);
}

TEST_CASE("A mesh without sizes is one rank") {
  const Mesh mesh;
  CHECK(mesh.world_size() == 1);
  CHECK(mesh.groups(kAllAxes) == Groups{{0}});
  CHECK(mesh.count(kAllAxes) == 1);
}

TEST_CASE("The groups of any axes part the ranks of any mesh") {
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < test::scaled(100); ++round) {
    const Mesh mesh = random_mesh(random);
    const auto mask =
        static_cast<AxisMask>(std::uniform_int_distribution<unsigned>(0, kAllAxes)(random));
    const Groups groups = mesh.groups(mask);
    std::vector<int> seen;
    for (const std::vector<int>& group : groups) {
      REQUIRE(static_cast<int>(group.size()) == mesh.count(mask));
      REQUIRE(std::is_sorted(group.begin(), group.end()));
      std::set<int> indices;
      for (const int rank : group) {
        REQUIRE(mesh.group(mask, rank) == group);
        // The index on the mask is the place in the group; the rest of the coordinates is shared.
        REQUIRE(group[static_cast<std::size_t>(mesh.index(mask, rank))] == rank);
        REQUIRE(mesh.index(static_cast<AxisMask>(kAllAxes & ~mask), rank) ==
                mesh.index(static_cast<AxisMask>(kAllAxes & ~mask), group.front()));
      }
      seen.insert(seen.end(), group.begin(), group.end());
    }
    std::sort(seen.begin(), seen.end());
    std::vector<int> all(static_cast<std::size_t>(mesh.world_size()));
    std::iota(all.begin(), all.end(), 0);
    REQUIRE(seen == all);
  }
}

TEST_CASE("Replacing a coordinate changes that one and no other") {
  std::mt19937_64 random(test::test_seed() + 1);
  for (int round = 0; round < test::scaled(100); ++round) {
    const Mesh mesh = random_mesh(random);
    const int rank = std::uniform_int_distribution<int>(0, mesh.world_size() - 1)(random);
    REQUIRE(mesh.index(kAllAxes, rank) == rank);
    for (const Axis axis : kAxes) {
      const int value = std::uniform_int_distribution<int>(0, mesh.size(axis) - 1)(random);
      const int moved = mesh.with(rank, axis, value);
      for (const Axis other : kAxes) {
        REQUIRE(mesh.coordinate(moved, other) ==
                (other == axis ? value : mesh.coordinate(rank, other)));
      }
      REQUIRE(mesh.with(moved, axis, mesh.coordinate(rank, axis)) == rank);
    }
  }
}
