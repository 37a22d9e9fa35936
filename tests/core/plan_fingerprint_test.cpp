#include "core/plan_fingerprint.h"

#include <set>

#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

Plan small_plan() {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.data.kind = DataKind::kDdp;
  scenario.strategy.data.degree = 2;
  return make_plan(resolved(scenario));
}

TEST_CASE("the same scenario gives the same fingerprint, every other scenario another") {
  std::set<std::uint64_t> seen;
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name);
    const std::uint64_t fingerprint = plan_fingerprint(make_plan(it.scenario));
    CHECK(fingerprint == plan_fingerprint(make_plan(it.scenario)));
    CHECK(seen.insert(fingerprint).second);
  }
}

template <typename Change>
void check_changes(const char* what, Change&& change) {
  INFO(what);
  static const Plan plan = small_plan();
  static const std::uint64_t before = plan_fingerprint(plan);
  Plan changed = plan;
  change(changed);
  CHECK(plan_fingerprint(changed) != before);
}

Operation& an_operation(Plan& plan) {
  return plan.sections[1].programs[0].operations[7];
}

TEST_CASE("every field of an operation counts") {
  check_changes("kind", [](Plan& p) { an_operation(p).kind = OperationKind::kRecv; });
  check_changes("work", [](Plan& p) { an_operation(p).work = Work::kCommit; });
  check_changes("collective", [](Plan& p) { an_operation(p).collective = Collective::kBarrier; });
  check_changes("phase", [](Plan& p) { an_operation(p).phase = Phase::kSave; });
  check_changes("stream", [](Plan& p) { an_operation(p).stream = Stream::kHost; });
  check_changes("communicator", [](Plan& p) { an_operation(p).communicator ^= 1U; });
  check_changes("reduction", [](Plan& p) { an_operation(p).reduction = Reduction::kMax; });
  check_changes("dtype", [](Plan& p) { an_operation(p).dtype = DType::kInt64; });
  check_changes("issue", [](Plan& p) { an_operation(p).issue = Issue::kWhenReady; });
  check_changes("inputs", [](Plan& p) { ++an_operation(p).inputs; });
  check_changes("outputs", [](Plan& p) { ++an_operation(p).outputs; });
  check_changes("flags", [](Plan& p) { an_operation(p).flags ^= kControl; });
  check_changes("microbatch", [](Plan& p) { ++an_operation(p).microbatch; });
  check_changes("peer", [](Plan& p) { ++an_operation(p).peer; });
  check_changes("root", [](Plan& p) { ++an_operation(p).root; });
  check_changes("scalar", [](Plan& p) { an_operation(p).scalar ^= 1U; });
  check_changes("layout", [](Plan& p) { an_operation(p).layout ^= 1U; });
  check_changes("dependencies", [](Plan& p) { ++an_operation(p).dependencies; });
  check_changes("module", [](Plan& p) { an_operation(p).module ^= 1U; });
  check_changes("elements", [](Plan& p) { ++an_operation(p).elements; });
  check_changes("shape", [](Plan& p) { ++an_operation(p).shape; });
  check_changes("tag", [](Plan& p) { ++an_operation(p).tag; });
  check_changes("buffer", [](Plan& p) { an_operation(p).buffer ^= 1U; });
  check_changes("guard", [](Plan& p) { an_operation(p).guard ^= 1U; });
  check_changes("first_view", [](Plan& p) { ++an_operation(p).first_view; });
  check_changes("first_dependency", [](Plan& p) { ++an_operation(p).first_dependency; });
}

TEST_CASE("tables, views, order and switches of a plan count") {
  check_changes("order", [](Plan& p) {
    std::swap(p.sections[1].programs[0].operations[7], p.sections[1].programs[0].operations[8]);
  });
  check_changes("view", [](Plan& p) { ++p.sections[1].programs[0].views[2].offset; });
  check_changes("dependency", [](Plan& p) { p.sections[1].programs[0].dependencies[0] ^= 1U; });
  check_changes("buffer size", [](Plan& p) { ++p.buffers[0][0].elements; });
  check_changes("buffer kind", [](Plan& p) { p.buffers[0][0].storage = Storage::kHost; });
  check_changes("communicator", [](Plan& p) { p.communicators[0].control ^= true; });
  check_changes("shape", [](Plan& p) { ++p.shapes[1].extent[0]; });
  check_changes("mesh", [](Plan& p) { p.mesh.set(Axis::kData, 4); });
  check_changes("classes", [](Plan& p) { p.class_axes ^= mask_of(Axis::kTensor); });
  check_changes("microbatches", [](Plan& p) { ++p.microbatches; });
  check_changes("tf32", [](Plan& p) { p.tf32 = true; });
  check_changes("host_shared", [](Plan& p) { p.host_shared = true; });
  check_changes("variants", [](Plan& p) { p.variant_of_iteration.push_back(0); });
  check_changes("section", [](Plan& p) { p.sections[1].variant = 3; });
}

}  // namespace
}  // namespace lockstep
