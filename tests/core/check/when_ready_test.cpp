#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct BucketsCase {
  int unused = -1;             ///< the bucket with a gradient that never comes
  bool asks = true;            ///< steps begin with kExpectIssued
  bool steady_unused = false;  ///< also from the second iteration on
};

/// Three buckets, all-reduced when ready, as PyTorch's DDP does: variants 0 and 1.
Plan buckets_plan(const BucketsCase& test) {
  PlanBuilder tables(mesh_of(1, 2), two_layer_graph());
  const std::uint8_t data = tables.communicator(mask_of(Axis::kData));
  ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
  Plan& plan = tables.plan();
  plan.variant_of_iteration = {0, 1};
  std::vector<BufferId> buckets;
  for (int variant = 0; variant < 2; ++variant) {
    b.begin_section();
    b.at(Phase::kBackward, 0);
    if (test.asks) {
      b.host(Work::kExpectIssued, {}, Views(), Views());
    }
    for (std::size_t bucket = 0; bucket < 3; ++bucket) {
      if (variant == 0) {
        AllocOptions persistent;
        persistent.lifetime = Lifetime::kPersistent;
        buckets.push_back(b.alloc(Category::kCommunication, DType::kFp32, 8, persistent));
      }
      const View whole = b.whole(buckets[bucket]);
      b.compute(Work::kZero, {}, {}, {whole});
      Extras extras = extras_on(Stream::kData);
      extras.issue = Issue::kWhenReady;
      b.collective(Collective::kAllReduce, data, Reduction::kAverage, 8, whole, whole, extras);
    }
    Program program = b.end_section();
    if (test.unused >= 0 && (variant == 0 || test.steady_unused)) {
      Operation& op = program.operations[find_operation(
          program, is_kind(OperationKind::kCollective), test.unused)];
      // Its dependencies become the last of the array, with one more.
      const std::vector<std::uint32_t> old(program.dependencies_of(op).begin(),
                                           program.dependencies_of(op).end());
      op.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
      program.dependencies.insert(program.dependencies.end(), old.begin(), old.end());
      program.dependencies.push_back(kNeverIssued);
      ++op.dependencies;
    }
    plan.sections.push_back({SectionKind::kStep, variant, {}});
    plan.sections.back().programs.push_back(std::move(program));
  }
  plan.buffers.push_back(b.take_buffers());
  return plan;
}

}  // namespace

TEST_CASE("a bucket whose gradient never comes is legal if the next step asks") {
  CHECK(check_plan(buckets_plan({})).text() == "no problems");
  CHECK(check_plan(buckets_plan({1, true})).text() == "no problems");
  CHECK(check_plan(buckets_plan({1, true, true})).text() == "no problems");
}

TEST_CASE("a next step that does not ask is reported with the bucket") {
  const PlanProblems problems = check_plan(buckets_plan({1, false}));
  REQUIRE(problems.count(PlanRule::kWhenReady) == 1);
  CHECK_THAT(problems.text(),
             ContainsSubstring("rank class 0 step[0] #5: all_reduce dp 8 fp32 average, h.0.mlp, "
                               "backward: never launches, and step[1] does not begin with "
                               "expect_issued"));
  // The steady variant is followed by itself.
  CHECK(check_plan(buckets_plan({1, false, true})).count(PlanRule::kWhenReady) == 2);
}

TEST_CASE("asking after the first collective is too late") {
  Plan plan = buckets_plan({0, true});
  Program& next = program_of(plan, 1, 0);
  const Operation ask = next.operations.front();
  remove_operation(next, 0);
  next.operations.push_back(ask);
  next.operations.back().dependencies = 0;
  CHECK(check_plan(plan).count(PlanRule::kWhenReady) == 1);
}

TEST_CASE("members must agree in what launches: later buckets do not, either") {
  // Classes by dp; rank 1's second bucket never launches, so it issues one all-reduce of three.
  Plan all = buckets_plan({});
  const Plan some = buckets_plan({1, true});
  all.class_axes = mask_of(Axis::kData);
  all.buffers.push_back(some.buffers[0]);
  for (std::size_t section = 0; section < 2; ++section) {
    all.sections[section].programs.push_back(some.sections[section].programs[0]);
  }
  const std::vector<PlanProblem> problems = problems_of(all, PlanRule::kSequence);
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0].message,
             ContainsSubstring("communicator dp, step[0], collective 1: rank 0 issues #6") &&
                 ContainsSubstring("but rank 1 issues no more than 1"));
}
