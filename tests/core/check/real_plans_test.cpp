// The plan check on what the planner emits: nothing to find, and everything to find once a plan is
// broken.
#include <random>

#include "core/plan_text.h"
#include "core/planner/planner.h"
#include "tests/core/check/race_search.h"
#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// A place in a plan, drawn at random.
struct Spot {
  int section = 0;
  int class_index = 0;
};

Spot random_spot(const Plan& plan, std::mt19937_64& random) {
  return {static_cast<int>(random() % plan.sections.size()),
          static_cast<int>(random() % static_cast<unsigned>(plan.class_count()))};
}

/// Index of an operation that `matches`, drawn at random; or none.
std::optional<std::uint32_t> random_operation(const Program& program,
                                              const std::function<bool(const Operation&)>& matches,
                                              std::mt19937_64& random) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t index = 0; index < program.operations.size(); ++index) {
    if (matches(program.operations[index])) {
      all.push_back(index);
    }
  }
  return all.empty() ? std::nullopt : std::optional(all[random() % all.size()]);
}

/// Calls body(plan, random) for a plan of every strategy.
template <typename Body>
void for_every_strategy(Body&& body) {
  std::mt19937_64 random(test_seed());
  for (const NamedScenario& named : one_of_each()) {
    INFO(named.name << ", seed " << test_seed());
    body(make_plan(named.scenario), random);
  }
}

}  // namespace

TEST_CASE("plans of every strategy pass all checks") {
  for (const NamedScenario& named : one_of_each()) {
    INFO(named.name);
    CHECK(check_plan(make_plan(named.scenario)).text() == "no problems");
  }
}

TEST_CASE("dropping a dependency of a real plan is found exactly when some rank then has a race") {
  int races = 0;
  for_every_strategy([&](const Plan& plan, std::mt19937_64& random) {
    for (int round = 0; round < scaled(4); ++round) {
      const Spot spot = random_spot(plan, random);
      Plan mutant = plan;
      Program& program = program_of(mutant, spot.section, spot.class_index);
      const auto index = random_operation(
          program, [](const Operation& op) { return op.dependencies > 0; }, random);
      if (!index.has_value() || program.operations.size() > 4'000) {
        continue;
      }
      INFO(describe(plan, spot.class_index, spot.section, *index));
      drop_dependency(
          program, *index, static_cast<int>(random() % program.operations[*index].dependencies));
      const bool expected = has_race(mutant, spot.section, spot.class_index);
      CHECK((check_plan(mutant).count(PlanRule::kRace) > 0) == expected);
      races += expected ? 1 : 0;
    }
  });
  CHECK(races > 20);
}

TEST_CASE("a real plan without one of its allocs, frees, sends or receives is refused") {
  for_every_strategy([](const Plan& plan, std::mt19937_64& random) {
    for (const OperationKind kind : {OperationKind::kAlloc,
                                     OperationKind::kFree,
                                     OperationKind::kSend,
                                     OperationKind::kRecv}) {
      const Spot spot = random_spot(plan, random);
      Plan mutant = plan;
      Program& program = program_of(mutant, spot.section, spot.class_index);
      const auto index = random_operation(program, is_kind(kind), random);
      if (!index.has_value()) {
        continue;
      }
      // An unused alias may come and go, and a bucket that DDP frees once may stay: memory then
      // still returns to its start.
      const Buffer* buffer = program.operations[*index].buffer == kNoBuffer
                                 ? nullptr
                                 : &plan.buffers[static_cast<std::size_t>(spot.class_index)]
                                                [program.operations[*index].buffer];
      if (kind == OperationKind::kFree && buffer->lifetime == Lifetime::kPersistent) {
        continue;
      }
      INFO(describe(plan, spot.class_index, spot.section, *index));
      remove_operation(program, *index);
      CHECK_FALSE(check_plan(mutant).empty());
    }
  });
}

TEST_CASE("a class that leaves out or doubles a collective of several classes is refused") {
  for_every_strategy([](const Plan& plan, std::mt19937_64& random) {
    const Spot spot = random_spot(plan, random);
    const Program& program = plan.sections[static_cast<std::size_t>(spot.section)]
                                 .programs[static_cast<std::size_t>(spot.class_index)];
    const auto index = random_operation(
        program,
        [&](const Operation& op) {
          // On the axes that classes differ in there is another class in the group.
          return op.kind == OperationKind::kCollective &&
                 plan.mesh.count(static_cast<AxisMask>(plan.communicators[op.communicator].axes &
                                                       plan.class_axes)) > 1;
        },
        random);
    if (!index.has_value()) {
      return;
    }
    INFO(describe(plan, spot.class_index, spot.section, *index));
    Plan without = plan;
    remove_operation(program_of(without, spot.section, spot.class_index), *index);
    CHECK(check_plan(without).count(PlanRule::kSequence) > 0);
    Plan twice = plan;
    Program& doubled = program_of(twice, spot.section, spot.class_index);
    doubled.operations.push_back(program.operations[*index]);
    CHECK(check_plan(twice).count(PlanRule::kSequence) > 0);
  });
}
