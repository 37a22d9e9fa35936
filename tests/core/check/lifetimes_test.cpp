#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Matchers::ContainsSubstring;

namespace {

AllocOptions persistent_options() {
  AllocOptions options;
  options.lifetime = Lifetime::kPersistent;
  return options;
}

std::vector<std::string> messages(const Plan& plan, PlanRule rule) {
  std::vector<std::string> result;
  for (const PlanProblem& problem : problems_of(plan, rule)) {
    result.push_back(problem.message);
  }
  return result;
}

/// The step of one class; `breaks` changes its program.
Plan scale_plan(const std::function<void(Program&)>& breaks) {
  Plan plan = one_class_plan([](PlanBuilder&, ProgramBuilder& b) {
    b.at(Phase::kForward);
    const BufferId x = b.alloc(Category::kActivation, DType::kFp32, 8);  // #0
    b.compute(Work::kZero, {{8}}, {}, {b.whole(x)});                     // #1
    b.compute(Work::kScale, {{8}}, {b.whole(x)}, {b.whole(x)});          // #2
    b.free(x);                                                           // #3
  });
  breaks(program_of(plan, 0, 0));
  return plan;
}

/// Steps by variant, each written by `emit(builder, variant, buffer)`; `buffer` is persistent.
Plan variants_plan(const std::vector<std::int32_t>& variants,
                   const std::function<void(ProgramBuilder&, int, BufferId&)>& emit) {
  PlanBuilder tables(mesh_of(1, 2), nullptr);
  ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
  Plan& plan = tables.plan();
  plan.variant_of_iteration = variants;
  BufferId buffer = kNoBuffer;
  for (int variant = 0; variant <= variants.back(); ++variant) {
    b.begin_section();
    emit(b, variant, buffer);
    plan.sections.push_back({SectionKind::kStep, variant, {}});
    plan.sections.back().programs.push_back(b.end_section());
  }
  plan.buffers.push_back(b.take_buffers());
  return plan;
}

}  // namespace

TEST_CASE("a buffer is used between its alloc and its free") {
  CHECK(check_plan(scale_plan([](Program&) {})).text() == "no problems");
  const auto early = messages(scale_plan([](Program& program) { remove_operation(program, 0); }),
                              PlanRule::kLifetime);
  REQUIRE(early.size() == 3);  // zero, scale (once for both of its views), free
  CHECK_THAT(early[0], ContainsSubstring("step #0: zero 8, forward: buffer 0 is not allocated"));
  CHECK_THAT(early[2],
             ContainsSubstring("step #2: free buffer 0 (activation 8 fp32), forward: is "
                               "not allocated"));
}

TEST_CASE("use after free names the free") {
  const auto late = messages(
      scale_plan([](Program& program) { std::swap(program.operations[2], program.operations[3]); }),
      PlanRule::kLifetime);
  REQUIRE(late.size() == 1);
  CHECK_THAT(late[0], ContainsSubstring("#3: scale 8, forward: buffer 0 was freed, step #2"));
}

TEST_CASE("a second free and a second alloc name the first") {
  const auto twice = messages(
      scale_plan([](Program& program) { program.operations.push_back(program.operations[3]); }),
      PlanRule::kLifetime);
  REQUIRE(twice.size() == 1);
  CHECK_THAT(twice[0], ContainsSubstring("was freed, step #3"));
  const auto again =
      messages(scale_plan([](Program& program) {
                 program.operations.insert(program.operations.begin(), program.operations[0]);
                 program.dependencies.clear();
               }),
               PlanRule::kLifetime);
  REQUIRE(again.size() == 1);
  CHECK_THAT(again[0], ContainsSubstring("is allocated already, step #0"));
}

TEST_CASE("step buffers are freed in their section") {
  const auto kept = messages(scale_plan([](Program& program) { remove_operation(program, 3); }),
                             PlanRule::kLifetime);
  REQUIRE(kept.size() == 1);
  CHECK_THAT(kept[0],
             ContainsSubstring("step #0: alloc buffer 0") &&
                 ContainsSubstring("is not freed in its section"));
}

TEST_CASE("reading what nothing wrote is reported, also where a result is added up") {
  const auto reads = messages(scale_plan([](Program& program) { remove_operation(program, 1); }),
                              PlanRule::kUnwritten);
  REQUIRE(reads.size() == 1);
  CHECK_THAT(
      reads[0],
      ContainsSubstring("scale 8, forward: reads buffer 0 (activation 8 fp32), which nothing "
                        "has written"));
  Plan plan = two_stage_plan();
  Program& program = program_of(plan, kStepSection, 0);
  remove_operation(program, find_operation(program, is_work(Work::kZero), 0));
  const auto adds = messages(plan, PlanRule::kUnwritten);
  REQUIRE(adds.size() == 1);
  CHECK_THAT(adds[0],
             ContainsSubstring("matmul_grad_weight") &&
                 ContainsSubstring("reads buffer 2 (gradient 64 fp32)"));
}

TEST_CASE("a persistent buffer is allocated once over all sections") {
  const auto plan_with = [](bool guarded) {
    return variants_plan({0, 1}, [guarded](ProgramBuilder& b, int variant, BufferId& buffer) {
      if (variant == 0 || !guarded) {
        buffer = b.alloc(Category::kOptimizer, DType::kFp32, 16, persistent_options());
        b.compute(Work::kZero, {{16}}, {}, {b.whole(buffer)});
      }
      b.compute(Work::kScale, {{16}}, {b.whole(buffer)}, {b.whole(buffer)});
    });
  };
  CHECK(check_plan(plan_with(true)).text() == "no problems");
  // Without the guard every iteration of variant 1 allocates its own again.
  const auto again = messages(plan_with(false), PlanRule::kLifetime);
  REQUIRE(!again.empty());
  CHECK_THAT(again[0],
             ContainsSubstring("step[1] #0: alloc buffer 1 (optimizer 16 fp32), init: is "
                               "allocated already, step[1] #0"));
}

TEST_CASE("a persistent buffer freed by a later variant stays freed") {
  const auto plan = variants_plan({0, 1, 2}, [](ProgramBuilder& b, int variant, BufferId& buffer) {
    if (variant == 0) {
      buffer = b.alloc(Category::kCommunication, DType::kFp32, 16, persistent_options());
      b.compute(Work::kZero, {{16}}, {}, {b.whole(buffer)});
    } else if (variant == 1) {
      b.free(buffer);
    }
  });
  CHECK(check_plan(plan).text() == "no problems");
  Plan broken = plan;
  Program& last = program_of(broken, 2, 0);
  last = program_of(broken, 1, 0);
  const auto late = messages(broken, PlanRule::kLifetime);
  REQUIRE(late.size() >= 1);
  CHECK_THAT(
      late[0],
      ContainsSubstring("step[2] #0: free buffer 0") && ContainsSubstring("was freed, step[1] #0"));
}

TEST_CASE("memory is back at its start from the third iteration on") {
  // A persistent buffer per variant: fine in iterations 1 and 2, growth in the third.
  const auto grows = [](const std::vector<std::int32_t>& variants) {
    return variants_plan(variants, [](ProgramBuilder& b, int, BufferId& buffer) {
      buffer = b.alloc(Category::kOptimizer, DType::kFp32, 16, persistent_options());
      b.compute(Work::kZero, {{16}}, {}, {b.whole(buffer)});
    });
  };
  const auto third = messages(grows({0, 1, 2}), PlanRule::kLifetime);
  REQUIRE(third.size() == 2);
  CHECK(third[0] == "rank class 0 step[2] ends with 64 more bytes of optimizer than it began with");
  const auto quiet = variants_plan({0, 1, 2}, [](ProgramBuilder& b, int variant, BufferId& buffer) {
    if (variant < 2) {
      buffer = b.alloc(Category::kOptimizer, DType::kFp32, 16, persistent_options());
      b.compute(Work::kZero, {{16}}, {}, {b.whole(buffer)});
    }
  });
  CHECK(check_plan(quiet).text() == "no problems");
}

TEST_CASE("sections after the last step leave memory alone, too") {
  Plan plan = two_stage_plan();
  PlanBuilder tables(plan.mesh, plan.graph);
  plan.sections.push_back({SectionKind::kEvaluate, 0, {}});
  for (int stage = 0; stage < 2; ++stage) {
    Operation op;
    op.kind = OperationKind::kFree;
    op.phase = Phase::kEvaluate;
    op.buffer = 0;
    plan.sections.back().programs.emplace_back().operations.push_back(op);
  }
  const auto fewer = messages(plan, PlanRule::kLifetime);
  REQUIRE(fewer.size() == 2);
  CHECK(fewer[1] ==
        "rank class 1 evaluate ends with 256 fewer bytes of parameter than it began with");
}

TEST_CASE("an alias lives within the life of its lender") {
  const auto plan_with = [](bool lender_first) {
    return one_class_plan([lender_first](PlanBuilder&, ProgramBuilder& b) {
      const BufferId bucket = b.alloc(Category::kCommunication, DType::kFp32, 16);
      AllocOptions options;
      options.alias_of = bucket;
      options.alias_offset = 8;
      const BufferId gradient = b.alloc(Category::kGradient, DType::kFp32, 8, options);
      b.compute(Work::kZero, {{16}}, {}, {b.whole(bucket)});
      b.compute(Work::kScale, {{8}}, {b.whole(gradient)}, {b.whole(gradient)});
      b.free(lender_first ? bucket : gradient);
      b.free(lender_first ? gradient : bucket);
    });
  };
  CHECK(check_plan(plan_with(false)).text() == "no problems");
  const auto outlives = messages(plan_with(true), PlanRule::kLifetime);
  REQUIRE(outlives.size() == 1);
  CHECK_THAT(outlives[0], ContainsSubstring("its alias, buffer 1, is still in use"));
  Plan orphan = plan_with(false);
  std::swap(program_of(orphan, 0, 0).operations[0], program_of(orphan, 0, 0).operations[1]);
  const auto early = messages(orphan, PlanRule::kLifetime);
  REQUIRE(early.size() == 1);
  CHECK_THAT(early[0], ContainsSubstring("its lender, buffer 0, is not allocated"));
}
