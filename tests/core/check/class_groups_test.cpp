#include "core/check/class_groups.h"

#include <algorithm>
#include <random>
#include <set>

#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Plan random_mesh(std::mt19937_64& random) {
  Plan plan;
  for (int axis = 0; axis < kAxisCount; ++axis) {
    plan.mesh.set(static_cast<Axis>(axis), 1 + static_cast<int>(random() % 3));
  }
  plan.class_axes = static_cast<AxisMask>(random() % 32);
  for (int i = 0; i < 4; ++i) {
    plan.communicators.push_back({static_cast<AxisMask>(random() % 32), random() % 8, false});
  }
  return plan;
}

}  // namespace

TEST_CASE("class groups are what the groups of all ranks look like") {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < scaled(100); ++round) {
    INFO("seed " << test_seed() << " round " << round);
    const Plan plan = random_mesh(random);
    const std::vector<ClassGroups> all = class_groups(plan, coordinates_of_classes(plan));
    for (std::size_t c = 0; c < plan.communicators.size(); ++c) {
      const Communicator& communicator = plan.communicators[c];
      for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
        const std::vector<int> ranks = members(plan, communicator, rank);
        const bool is_member = std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
        const int group = all[c].group_of_class[static_cast<std::size_t>(plan.class_of_rank(rank))];
        if (group == ClassGroups::kNotMember) {
          continue;  // some rank of the class is left out: checked below
        }
        CHECK(is_member);
        CHECK(static_cast<int>(ranks.size()) == all[c].members);
        std::set<int> classes;
        for (const int member : ranks) {
          classes.insert(plan.class_of_rank(member));
        }
        const std::vector<int>& listed = all[c].groups[static_cast<std::size_t>(group)];
        CHECK(std::vector<int>(classes.begin(), classes.end()) == listed);
      }
      for (int index = 0; index < plan.class_count(); ++index) {
        bool all_members = true;
        for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
          const std::vector<int> ranks = members(plan, communicator, rank);
          all_members = all_members && (plan.class_of_rank(rank) != index ||
                                        std::find(ranks.begin(), ranks.end(), rank) != ranks.end());
        }
        const int group = all[c].group_of_class[static_cast<std::size_t>(index)];
        CHECK(all_members == (group != ClassGroups::kNotMember));
      }
    }
  }
}

TEST_CASE("a class and its neighbour along the pipeline differ in the stage alone") {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < scaled(100); ++round) {
    Plan plan = random_mesh(random);
    plan.class_axes |= mask_of(Axis::kPipeline);
    for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
      for (int stage = 0; stage < plan.mesh.size(Axis::kPipeline); ++stage) {
        CHECK(class_at_stage(plan, plan.class_of_rank(rank), stage) ==
              plan.class_of_rank(plan.mesh.with(rank, Axis::kPipeline, stage)));
      }
      CHECK(class_at_stage(plan, plan.class_of_rank(rank), 3) == -1);
    }
  }
}
