#include <random>

#include "tests/core/check/race_search.h"
#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<std::string> races_of(const Plan& plan) {
  std::vector<std::string> result;
  for (const PlanProblem& problem : problems_of(plan, PlanRule::kRace)) {
    result.push_back(problem.message);
  }
  return result;
}

/// A random program on all streams over a few buffers and parts of them.
Plan random_plan(std::mt19937_64& random) {
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  return one_class_plan([&](PlanBuilder&, ProgramBuilder& b) {
    constexpr int kBuffers = 4;
    BufferId buffers[kBuffers];
    for (BufferId& buffer : buffers) {
      buffer = b.alloc(Category::kTemporary, DType::kFp32, 12);
      b.compute(Work::kZero, {}, {}, {b.whole(buffer)});
    }
    const auto part = [&] {
      const std::int64_t begin = 3 * below(4);
      const BufferId buffer = buffers[below(kBuffers)];
      return ProgramBuilder::range(buffer, begin, 3 * (1 + below(static_cast<int>(4 - begin / 3))));
    };
    const int operations = 6 + below(20);
    for (int i = 0; i < operations; ++i) {
      Extras extras = extras_on(static_cast<Stream>(below(6)));
      extras.flags = below(8) == 0 ? kHostSync : 0;
      const View a = part();
      const View c = part();
      b.compute(Work::kAdd, {}, {a, c}, {part()}, extras);
      if (below(6) == 0) {
        BufferId& old = buffers[below(kBuffers)];
        b.free(old);
        old = b.alloc(Category::kTemporary, DType::kFp32, 12);
        b.compute(Work::kZero, {}, {}, {b.whole(old)});
      }
    }
    for (const BufferId buffer : buffers) {
      b.free(buffer);
    }
  });
}

}  // namespace

TEST_CASE("dropping any dependency is found exactly when a search over all pairs finds a race") {
  std::mt19937_64 random(test_seed());
  int dropped = 0;
  int races = 0;
  for (int round = 0; round < scaled(60); ++round) {
    INFO("seed " << test_seed() << " round " << round);
    const Plan plan = random_plan(random);
    REQUIRE(check_plan(plan).text() == "no problems");
    const Program& program = plan.sections[0].programs[0];
    for (std::uint32_t index = 0; index < program.operations.size(); ++index) {
      for (int nth = 0; nth < program.operations[index].dependencies; ++nth) {
        Plan mutant = plan;
        drop_dependency(program_of(mutant, 0, 0), index, nth);
        const bool expected = has_race(mutant, 0, 0);
        INFO("operation " << index << " dependency " << nth);
        CHECK(races_of(mutant).empty() != expected);
        ++dropped;
        races += expected ? 1 : 0;
      }
    }
  }
  CHECK(dropped > 100);
  CHECK(races > dropped / 4);
}

TEST_CASE("every dependency of the two-stage plan that matters is missed when it is dropped") {
  const Plan plan = two_stage_plan();
  int races = 0;
  for (int section = 0; section < 2; ++section) {
    for (int stage = 0; stage < 2; ++stage) {
      const Program& program = plan.sections[static_cast<std::size_t>(section)]
                                   .programs[static_cast<std::size_t>(stage)];
      for (std::uint32_t index = 0; index < program.operations.size(); ++index) {
        for (int nth = 0; nth < program.operations[index].dependencies; ++nth) {
          Plan mutant = plan;
          Program& broken = program_of(mutant, section, stage);
          drop_dependency(broken, index, nth);
          const bool expected = has_race(mutant, section, stage);
          CHECK(races_of(mutant).empty() != expected);
          races += expected ? 1 : 0;
        }
      }
    }
  }
  CHECK(races >= 10);
}

TEST_CASE("a race names both operations, their streams and the buffer") {
  Plan plan = two_stage_plan();
  Program& program = program_of(plan, kStepSection, 1);
  const std::uint32_t matmul = find_operation(program, is_work(Work::kMatmul));
  REQUIRE(program.operations[matmul].dependencies == 1);
  drop_dependency(program, matmul, 0);
  const auto races = races_of(plan);
  REQUIRE(races.size() == 1);
  CHECK(races[0] ==
        "rank class 1 step #7: matmul 4x8x8x1, h.1.mlp, micro-batch 0, forward: on stream compute, "
        "does not wait for #5 recv from stage 0 32 fp32 tag 0, h.1.mlp, micro-batch 0, forward on "
        "stream pipeline; both use buffer 4 (activation 32 fp32)");
}

TEST_CASE("two readers need no order, a reader and a later writer do") {
  const auto plan_with = [](bool second_writes) {
    Plan plan = one_class_plan([&](PlanBuilder&, ProgramBuilder& b) {
      const BufferId x = b.alloc(Category::kTemporary, DType::kFp32, 4);
      b.compute(Work::kZero, {}, {}, {b.whole(x)});
      const BufferId y = b.alloc(Category::kTemporary, DType::kFp32, 4);
      b.compute(Work::kCast, {}, {b.whole(x)}, {b.whole(y)}, extras_on(Stream::kCopy));
      if (second_writes) {
        b.compute(Work::kZero, {}, {}, {b.whole(x)});
      } else {
        const BufferId z = b.alloc(Category::kTemporary, DType::kFp32, 4);
        b.compute(Work::kCast, {}, {b.whole(x)}, {b.whole(z)});
        b.free(z);
      }
      b.free(x);
      b.free(y);
    });
    Program& program = program_of(plan, 0, 0);
    unorder_computes(program);
    wait_for_all(program, 3);  // the copy stream reads what #1 has written
    return plan;
  };
  CHECK(check_plan(plan_with(false)).text() == "no problems");
  const auto races = races_of(plan_with(true));
  REQUIRE(races.size() == 1);
  CHECK_THAT(races[0],
             ContainsSubstring("zero, init: on stream compute, does not wait for #3 cast"));
}

TEST_CASE("a free orders nothing: who reads what another stream wrote waits for it all the same") {
  const Plan plan = one_class_plan([](PlanBuilder&, ProgramBuilder& b) {
    const BufferId x = b.alloc(Category::kTemporary, DType::kFp32, 4);
    const BufferId y = b.alloc(Category::kTemporary, DType::kFp32, 4);
    b.compute(Work::kZero, {}, {}, {b.whole(x)}, extras_on(Stream::kData));
    b.compute(Work::kCast, {}, {b.whole(x)}, {b.whole(y)}, extras_on(Stream::kData));
    b.free(x);
    b.compute(Work::kScale, {}, {b.whole(y)}, {b.whole(y)});
    b.free(y);
  });
  CHECK(check_plan(plan).text() == "no problems");
  const Program& program = plan.sections[0].programs[0];
  CHECK(program.operations[find_operation(program, is_kind(OperationKind::kFree))].dependencies ==
        0);
  CHECK(program.operations[find_operation(program, is_work(Work::kScale))].dependencies == 1);
}

TEST_CASE("aliases are the memory of their lender") {
  const auto plan_with = [](std::int64_t first, std::int64_t second) {
    Plan plan = one_class_plan([&](PlanBuilder&, ProgramBuilder& b) {
      const BufferId bucket = b.alloc(Category::kCommunication, DType::kFp32, 16);
      AllocOptions options;
      options.alias_of = bucket;
      options.alias_offset = 2 * first;  // elements of bf16
      const BufferId a = b.alloc(Category::kGradient, DType::kBf16, 8, options);
      options.alias_offset = 2 * second;
      const BufferId c = b.alloc(Category::kGradient, DType::kBf16, 8, options);
      b.compute(Work::kZero, {}, {}, {b.whole(a)}, extras_on(Stream::kCopy));
      b.compute(Work::kZero, {}, {}, {b.whole(c)}, extras_on(Stream::kData));
      b.free(a);
      b.free(c);
      b.free(bucket);
    });
    unorder_computes(program_of(plan, 0, 0));
    return plan;
  };
  // Eight bf16 are the bytes of four fp32.
  CHECK(races_of(plan_with(0, 4)).empty());
  CHECK(races_of(plan_with(4, 8)).empty());
  CHECK(races_of(plan_with(0, 3)).size() == 1);
  CHECK_THAT(races_of(plan_with(3, 0)).at(0), ContainsSubstring("both use buffer 0"));
}

TEST_CASE("slices along an axis overlap as they do on real coordinates") {
  // dp 4, buffer of 16: this rank's slice [4c, 4c + 4) on one stream, [begin, begin + 4) on
  // another.
  const auto plan_with = [](std::int64_t begin, AxisMask class_axes) {
    PlanBuilder tables(mesh_of(1, 4), nullptr);
    Plan& plan = tables.plan();
    plan.class_axes = class_axes;
    plan.variant_of_iteration = {0};
    plan.sections = {{SectionKind::kStep, 0, {}}};
    for (int index = 0; index < plan.class_count(); ++index) {
      ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
      b.begin_section();
      const BufferId x = b.alloc(Category::kCommunication, DType::kFp32, 16);
      b.compute(Work::kZero,
                {},
                {},
                {ProgramBuilder::slice(x, Axis::kData, 4)},
                extras_on(Stream::kCopy));
      b.compute(
          Work::kZero, {}, {}, {ProgramBuilder::range(x, begin, 4)}, extras_on(Stream::kData));
      b.free(x);
      plan.sections[0].programs.push_back(b.end_section());
      plan.buffers.push_back(b.take_buffers());
      unorder_computes(plan.sections[0].programs.back());
    }
    return plan;
  };
  // Some rank's slice is every part of the buffer: first, middle and last rank show it.
  CHECK(races_of(plan_with(0, 0)).size() == 1);
  CHECK(races_of(plan_with(8, 0)).size() == 1);
  CHECK(races_of(plan_with(12, 0)).size() == 1);
  // With a class per coordinate only that class races.
  const Plan plan = plan_with(4, mask_of(Axis::kData));
  const std::vector<PlanProblem> problems = problems_of(plan, PlanRule::kRace);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].class_index == 1);
}

TEST_CASE("a guard is read when its operation runs") {
  Plan plan = two_stage_plan();
  Program& program = program_of(plan, kStepSection, 0);
  const std::uint32_t sgd = find_operation(program, is_work(Work::kSgd));
  REQUIRE(program.operations[sgd].dependencies == 1);
  drop_dependency(program, sgd, 0);
  const auto races = races_of(plan);
  REQUIRE(!races.empty());
  CHECK_THAT(races[0],
             ContainsSubstring("sgd 64") && ContainsSubstring("all_reduce pp+dp 1 fp32 max"));
}

TEST_CASE("an operation that never launches touches nothing") {
  Plan plan = one_class_plan([](PlanBuilder& tables, ProgramBuilder& b) {
    const std::uint8_t data = tables.communicator(mask_of(Axis::kData));
    b.host(Work::kExpectIssued, {}, Views(), Views());
    const BufferId x = b.alloc(Category::kCommunication, DType::kFp32, 4);
    b.compute(Work::kZero, {}, {}, {b.whole(x)});
    Extras extras = extras_on(Stream::kData);
    extras.issue = Issue::kWhenReady;
    b.collective(Collective::kAllReduce, data, Reduction::kSum, 4, b.whole(x), b.whole(x), extras);
    b.free(x);
  });
  Program& program = program_of(plan, 0, 0);
  Operation& op = program.operations[find_operation(program, is_kind(OperationKind::kCollective))];
  op.dependencies = 1;
  op.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
  program.dependencies.push_back(kNeverIssued);
  CHECK(check_plan(plan).text() == "no problems");
  program.dependencies.back() = 0;  // now it launches, unordered
  CHECK(races_of(plan).size() == 1);
}
