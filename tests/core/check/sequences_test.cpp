#include <utility>

#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

/// Classes are the coordinates of tp; each step runs what `emit` issues for its coordinate.
Plan tensor_plan(int degree, const std::function<void(ProgramBuilder&, std::uint8_t, int)>& emit) {
  PlanBuilder tables(mesh_of(1, 2, degree), two_layer_graph());
  const std::uint8_t tensor = tables.communicator(mask_of(Axis::kTensor));
  Plan& plan = tables.plan();
  plan.class_axes = mask_of(Axis::kTensor);
  plan.variant_of_iteration = {0};
  plan.sections = {{SectionKind::kStep, 0, {}}};
  for (int coordinate = 0; coordinate < degree; ++coordinate) {
    ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
    b.begin_section();
    emit(b, tensor, coordinate);
    plan.sections[0].programs.push_back(b.end_section());
    plan.buffers.push_back(b.take_buffers());
  }
  return plan;
}

/// One all-reduce per entry, each on a new buffer of that many elements.
void all_reduces(ProgramBuilder& b, std::uint8_t communicator, std::vector<std::int64_t> sizes) {
  for (const std::int64_t elements : sizes) {
    const BufferId buffer = b.alloc(Category::kGradient, DType::kBf16, elements);
    b.compute(Work::kZero, {{elements}}, {}, {b.whole(buffer)});
    b.collective(Collective::kAllReduce,
                 communicator,
                 Reduction::kSum,
                 elements,
                 b.whole(buffer),
                 b.whole(buffer),
                 extras_on(Stream::kTensor));
    b.free(buffer);
  }
}

std::string first_message(const Plan& plan) {
  const std::vector<PlanProblem> problems = problems_of(plan, PlanRule::kSequence);
  return problems.empty() ? std::string("none") : problems.front().message;
}

Operation& collective_of(Plan& plan, int section, int class_index, int nth) {
  Program& program = program_of(plan, section, class_index);
  return program.operations[find_operation(program, is_kind(OperationKind::kCollective), nth)];
}

}  // namespace

TEST_CASE("equal sequences on all members pass, whatever else the classes do") {
  const Plan plan = tensor_plan(4, [](ProgramBuilder& b, std::uint8_t tensor, int coordinate) {
    b.at(Phase::kForward, 0, 0);
    if (coordinate == 2) {
      const BufferId extra = b.alloc(Category::kTemporary, DType::kFp32, 3);
      b.compute(Work::kZero, {{3}}, {}, {b.whole(extra)});
      b.free(extra);
    }
    all_reduces(b, tensor, {64, 8, 64});
  });
  CHECK(check_plan(plan).text() == "no problems");
}

TEST_CASE("two collectives swapped on one class name place, ranks, operations and module") {
  const Plan plan = tensor_plan(4, [](ProgramBuilder& b, std::uint8_t tensor, int coordinate) {
    b.at(Phase::kForward, 1, 0);
    if (coordinate == 3) {
      all_reduces(b, tensor, {64, 16, 8});
    } else {
      all_reduces(b, tensor, {64, 8, 16});
    }
  });
  const std::vector<PlanProblem> problems = problems_of(plan, PlanRule::kSequence);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].message ==
        "communicator tp, step, collective 1: rank 0 issues #6 all_reduce tp 8 bf16 sum, h.1.mlp, "
        "micro-batch 0, forward, but rank 3 issues #6 all_reduce tp 16 bf16 sum, h.1.mlp, "
        "micro-batch 0, forward");
  CHECK(problems[0].section == 0);
  CHECK(problems[0].operation == 6);
}

TEST_CASE("a member that stops early is told from one that differs") {
  const Plan plan = tensor_plan(2, [](ProgramBuilder& b, std::uint8_t tensor, int coordinate) {
    b.at(Phase::kForward);
    all_reduces(b,
                tensor,
                coordinate == 0 ? std::vector<std::int64_t>{8, 8} : std::vector<std::int64_t>{8});
  });
  CHECK_THAT(first_message(plan),
             ContainsSubstring("collective 1: rank 0 issues #6 all_reduce tp 8 bf16 sum, forward, "
                               "but rank 1 issues no more than 1"));
  // The hang that follows is the same fault and is not reported again.
  CHECK(problems_of(plan, PlanRule::kDeadlock).empty());
}

TEST_CASE("kind, count, type, reduction, root, control and guard must agree") {
  const std::vector<std::function<void(Operation&)>> changes = {
      [](Operation& op) { op.collective = Collective::kBroadcast; },
      [](Operation& op) { op.elements += 1; },
      [](Operation& op) { op.dtype = DType::kBf16; },
      [](Operation& op) { op.reduction = Reduction::kSum; },
      [](Operation& op) { op.root = 1; },
      [](Operation& op) { op.flags = 0; },
      [](Operation& op) { op.guard = 3; },
  };
  CHECK(first_message(two_stage_plan()) == "none");
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    Plan plan = two_stage_plan();
    // The maximum of the flag runs over pp x dp, so stages 0 and 1 have to agree.
    changes[i](collective_of(plan, kStepSection, 1, 1));
    std::string message = first_message(plan);
    if (message == "none") {
      // Some changes break the operation by itself, which ends the check before this rule.
      const PlanProblems problems = check_plan(plan);
      CHECK(problems.list().front().rule == PlanRule::kStructure);
    } else {
      CHECK_THAT(message,
                 StartsWith("communicator pp+dp (control), step, collective 0: rank 0 issues #"));
      CHECK_THAT(message, ContainsSubstring("but rank 2 issues #"));
    }
  }
}

TEST_CASE("groups of some stages only compare these stages") {
  const auto tied_plan = [](std::uint64_t stages, std::int64_t elements_of_last) {
    PlanBuilder tables(mesh_of(3, 2), two_layer_graph());
    const std::uint8_t tied = tables.communicator(mask_of(Axis::kPipeline), stages);
    Plan& plan = tables.plan();
    plan.class_axes = mask_of(Axis::kPipeline);
    plan.variant_of_iteration = {0};
    plan.sections = {{SectionKind::kStep, 0, {}}};
    for (int stage = 0; stage < 3; ++stage) {
      ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
      b.begin_section();
      b.at(Phase::kReduce);
      if (stage != 1) {
        all_reduces(b, tied, {stage == 2 ? elements_of_last : 8});
      }
      plan.sections[0].programs.push_back(b.end_section());
      plan.buffers.push_back(b.take_buffers());
    }
    return plan;
  };
  CHECK(check_plan(tied_plan(0b101, 8)).text() == "no problems");
  CHECK_THAT(first_message(tied_plan(0b101, 16)),
             StartsWith("communicator pp{0,2}, step, collective 0: rank 0 issues #2 all_reduce "
                        "pp{0,2} 8 bf16 sum, reduce, but rank 4 issues #2"));
  // Over all stages, the middle one is missing.
  CHECK_THAT(first_message(tied_plan(0, 8)), ContainsSubstring("but rank 2 issues no more than 0"));
}

TEST_CASE("classes of owners along dp are compared within their group") {
  // Mesh dp 4 x tp 2, classes by dp: every tp group is of one class, every dp group has all four.
  PlanBuilder tables(mesh_of(1, 4, 2), two_layer_graph());
  const std::uint8_t tensor = tables.communicator(mask_of(Axis::kTensor));
  const std::uint8_t data = tables.communicator(mask_of(Axis::kData));
  Plan& plan = tables.plan();
  plan.class_axes = mask_of(Axis::kData);
  plan.variant_of_iteration = {0};
  plan.sections = {{SectionKind::kStep, 0, {}}};
  for (int owner = 0; owner < 4; ++owner) {
    ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
    b.begin_section();
    b.at(Phase::kReduce);
    // Sizes on tp differ between owners, which is right: tp groups lie within one.
    all_reduces(b, tensor, {8 + owner});
    all_reduces(b, data, {owner == 3 ? 99 : 100});
    plan.sections[0].programs.push_back(b.end_section());
    plan.buffers.push_back(b.take_buffers());
  }
  const std::vector<PlanProblem> problems = problems_of(plan, PlanRule::kSequence);
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0].message, StartsWith("communicator dp, step, collective 0: rank 0 issues"));
  CHECK_THAT(problems[0].message, ContainsSubstring("but rank 6 issues #6 all_reduce dp 99"));
}
