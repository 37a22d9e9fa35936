#include "core/plan_text.h"

#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("an operation is described by place, action, module, micro-batch and phase") {
  Plan plan = two_stage_plan();
  const Program& first = plan.sections[kStepSection].programs[0];
  const auto text = [&](OperationKind kind) {
    return describe(plan, 0, kStepSection, find_operation(first, is_kind(kind)));
  };
  CHECK(text(OperationKind::kAlloc) ==
        "rank class 0 step #0: alloc buffer 2 (gradient 64 fp32), h.0.mlp, forward");
  CHECK(text(OperationKind::kHost) ==
        "rank class 0 step #5: load_batch 1x4, h.0.mlp, micro-batch 0, forward");
  CHECK(text(OperationKind::kSend) ==
        "rank class 0 step #8: send to stage 1 32 fp32 tag 0, h.0.mlp, micro-batch 0, forward");
  CHECK(
      text(OperationKind::kRecv) ==
      "rank class 0 step #15: recv from stage 1 32 fp32 tag 16, h.0.mlp, micro-batch 0, backward");
  CHECK(text(OperationKind::kCollective) ==
        "rank class 0 step #26: all_reduce dp 64 fp32 sum, h.0.mlp, reduce");
  CHECK(describe(plan, 1, kInitSection, 2) ==
        "rank class 1 init #2: broadcast dp 64 fp32 root 0, h.1.mlp, init");
}

TEST_CASE("operations of a plan without a graph name their module by number") {
  Plan plan = two_stage_plan();
  plan.graph = nullptr;
  CHECK(describe(plan, 0, kStepSection, 2) == "rank class 0 step #2: zero 64, module 0, forward");
  CHECK_THROWS_AS(describe(plan, 0, kStepSection, 10'000), InternalError);
}

TEST_CASE("control operations and step variants are told apart") {
  Plan plan = two_stage_plan();
  plan.sections.push_back(plan.sections[kStepSection]);
  plan.sections.back().variant = 1;
  const Program& program = plan.sections[2].programs[0];
  const std::uint32_t flag =
      find_operation(program, [](const Operation& op) { return op.reduction == Reduction::kMax; });
  CHECK(describe(plan, 0, 2, flag) == "rank class 0 step[1] #" + std::to_string(flag) +
                                          ": all_reduce pp+dp 1 fp32 max, h.0.mlp, optimizer, "
                                          "control");
  CHECK(section_text(plan, 0) == "init");
}

TEST_CASE("groups are named by their axes, outermost first, with the stages they keep") {
  CHECK(group_text({0, 0, false}) == "self");
  CHECK(group_text({mask_of(Axis::kTensor), 0, false}) == "tp");
  CHECK(group_text({kDataAxes, 0, false}) == "dp_replicate+dp");
  CHECK(group_text({mask_of(Axis::kPipeline), 0b1001, false}) == "pp{0,3}");
}

TEST_CASE("the rank of a class is the smallest one of that class") {
  Plan plan;
  plan.mesh.set(Axis::kPipeline, 3);
  plan.mesh.set(Axis::kData, 2);
  plan.mesh.set(Axis::kTensor, 4);
  for (AxisMask axes = 0; axes < 32; ++axes) {
    plan.class_axes = axes;
    for (int index = 0; index < plan.class_count(); ++index) {
      int smallest = 0;
      while (plan.class_of_rank(smallest) != index) {
        ++smallest;
      }
      CHECK(rank_of_class(plan, index) == smallest);
    }
  }
}
