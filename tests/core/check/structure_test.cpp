#include "core/check/operand_counts.h"
#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The one structure problem of the two-stage plan after `breaks` has changed it.
std::string fault_after(const std::function<void(Plan&)>& breaks) {
  Plan plan = two_stage_plan();
  breaks(plan);
  const std::vector<PlanProblem> problems = problems_of(plan, PlanRule::kStructure);
  return problems.empty() ? std::string("none") : problems.front().message;
}

/// The same, with a change to the first operation of stage 0's step that is of the kind.
std::string fault_of(OperationKind kind, const std::function<void(Operation&)>& breaks) {
  return fault_after([&](Plan& plan) {
    Program& program = program_of(plan, kStepSection, 0);
    breaks(program.operations[find_operation(program, is_kind(kind))]);
  });
}

}  // namespace

TEST_CASE("indices outside their tables are reported with the operation") {
  using Kind = OperationKind;
  CHECK_THAT(fault_of(Kind::kCompute, [](Operation& op) { op.shape = 999; }),
             ContainsSubstring("shape 999 does not exist"));
  CHECK_THAT(fault_of(Kind::kCompute, [](Operation& op) { op.scalar = 7; }),
             ContainsSubstring("scalar 7 does not exist"));
  CHECK_THAT(fault_of(Kind::kCompute, [](Operation& op) { op.layout = 7; }),
             ContainsSubstring("layout 7 does not exist"));
  CHECK_THAT(fault_of(Kind::kCompute, [](Operation& op) { op.module = 2; }),
             ContainsSubstring("module 2 does not exist"));
  CHECK_THAT(fault_of(Kind::kCompute, [](Operation& op) { op.microbatch = 2; }),
             ContainsSubstring("micro-batch 2 of 2"));
  CHECK_THAT(fault_of(Kind::kCompute, [](Operation& op) { op.guard = 500; }),
             ContainsSubstring("guard buffer 500 does not exist"));
  CHECK_THAT(fault_of(Kind::kAlloc, [](Operation& op) { op.buffer = 500; }),
             ContainsSubstring("names buffer 500"));
  CHECK_THAT(fault_of(Kind::kCompute, [](Operation& op) { op.first_view = 60000; }),
             ContainsSubstring("views lie outside"));
  CHECK_THAT(fault_of(Kind::kCollective, [](Operation& op) { op.communicator = 9; }),
             ContainsSubstring("communicator 9 does not exist"));
  CHECK_THAT(fault_of(Kind::kSend, [](Operation& op) { op.peer = 2; }),
             ContainsSubstring("peer stage 2 does not exist"));
  CHECK_THAT(fault_of(Kind::kSend, [](Operation& op) { op.peer = 0; }),
             ContainsSubstring("its peer is the same stage"));
  CHECK_THAT(fault_of(Kind::kSend, [](Operation& op) { op.communicator = 1; }),
             ContainsSubstring("does not span the pipeline"));
}

TEST_CASE("enumerators that do not exist are reported") {
  const auto beyond = [](Operation& op) { op.work = static_cast<Work>(200); };
  CHECK_THAT(fault_of(OperationKind::kCompute, beyond),
             ContainsSubstring("an enumerator is out of range"));
  CHECK_THAT(fault_of(OperationKind::kCompute, [](Operation& op) { op.flags = 0x8000; }),
             ContainsSubstring("an enumerator is out of range"));
}

TEST_CASE("operands, roots and reductions must suit the operation") {
  using Kind = OperationKind;
  const auto drop_input = [](Operation& op) {
    ++op.first_view;
    op.inputs = 1;
  };
  CHECK_THAT(fault_after([&](Plan& plan) {
               Program& program = program_of(plan, kStepSection, 0);
               drop_input(program.operations[find_operation(program, is_work(Work::kMatmul))]);
             }),
             ContainsSubstring("matmul 4x8x8x1, h.0.mlp, micro-batch 0, forward: 1 inputs and 1 "
                               "outputs"));
  CHECK_THAT(fault_of(Kind::kCollective, [](Operation& op) { op.root = 1; }),
             ContainsSubstring("root 1 of 2 members"));
  CHECK_THAT(fault_of(Kind::kCollective, [](Operation& op) { op.reduction = Reduction::kNone; }),
             ContainsSubstring("has reduction none"));
  CHECK_THAT(fault_of(Kind::kSend, [](Operation& op) { op.work = Work::kAdd; }),
             ContainsSubstring("runs work add"));
  CHECK_THAT(fault_of(Kind::kHost, [](Operation& op) { op.stream = Stream::kData; }),
             ContainsSubstring("lies on stream data"));
  CHECK_THAT(fault_of(Kind::kCompute, [](Operation& op) { op.flags = kInPlace; }),
             ContainsSubstring("marked in place, but no output is an input"));
}

TEST_CASE("dependencies point backwards, and only a kWhenReady operation may wait for nothing") {
  const auto with_dependency = [](std::uint32_t on, Issue issue) {
    return fault_after([&](Plan& plan) {
      Program& program = program_of(plan, kStepSection, 0);
      Operation& op = program.operations[find_operation(program, is_work(Work::kSgd))];
      op.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
      op.dependencies = 1;
      op.issue = issue;
      program.dependencies.push_back(on);
    });
  };
  CHECK_THAT(with_dependency(10'000, Issue::kInOrder),
             ContainsSubstring("waits for the later operation #10000"));
  CHECK_THAT(with_dependency(kNeverIssued, Issue::kInOrder),
             ContainsSubstring("waits for an operation that is never issued"));
  CHECK(with_dependency(kNeverIssued, Issue::kWhenReady) == "none");
}

TEST_CASE("tables that do not fit the mesh are reported and end the check") {
  CHECK_THAT(fault_after([](Plan& plan) { plan.buffers.pop_back(); }),
             ContainsSubstring("1 buffer tables for 2 classes"));
  CHECK_THAT(fault_after([](Plan& plan) { plan.sections[1].programs.pop_back(); }),
             ContainsSubstring("section 1 has 1 programs for 2 classes"));
  CHECK_THAT(fault_after([](Plan& plan) { plan.mesh.set(Axis::kTensor, 0); }),
             ContainsSubstring("axis tp has size 0"));
  CHECK_THAT(fault_after([](Plan& plan) {
               plan.variant_of_iteration = {0, 3};
             }),
             ContainsSubstring("step variant 3 has no section"));
  CHECK_THAT(fault_after([](Plan& plan) { plan.variant_of_iteration.clear(); }),
             ContainsSubstring("names no step"));
  CHECK_THAT(fault_after([](Plan& plan) { plan.sections.push_back(plan.sections[0]); }),
             ContainsSubstring("init is there twice"));
  CHECK_THAT(fault_after([](Plan& plan) { plan.communicators[0].axes = 0x40; }),
             ContainsSubstring("communicator 0 names an axis that does not exist"));
  CHECK_THAT(fault_after([](Plan& plan) {
               plan.scalars.push_back({{}, {}, 1, 0});
             }),
             ContainsSubstring("scalar 0 divides by zero"));
}

TEST_CASE("aliases lie inside a buffer that owns its memory") {
  const auto with_alias = [](std::uint32_t lender, std::int64_t offset, std::int64_t elements) {
    return fault_after([&](Plan& plan) {
      Buffer buffer;
      buffer.alias_of = lender;
      buffer.alias_offset = offset;
      buffer.elements = elements;
      plan.buffers[0].push_back(buffer);
      buffer.alias_of = 0;
      buffer.alias_offset = 0;
      buffer.elements = 1;
      plan.buffers[0].push_back(buffer);
    });
  };
  const auto last = static_cast<std::uint32_t>(two_stage_plan().buffers[0].size());
  CHECK(with_alias(0, 0, kWidth * kWidth) == "none");
  CHECK(with_alias(0, 1, kWidth * kWidth - 1) == "none");
  CHECK_THAT(with_alias(0, 1, kWidth * kWidth),
             ContainsSubstring("is an alias of bytes [4, 260) of buffer 0, which has 256"));
  CHECK_THAT(with_alias(0, -1, 1), ContainsSubstring("is an alias of bytes [-4, 0)"));
  CHECK_THAT(with_alias(99, 0, 1), ContainsSubstring("buffer 99, which does not exist"));
  CHECK_THAT(with_alias(last + 1, 0, 1), ContainsSubstring("which is an alias itself"));
}

TEST_CASE("a rank that the communicator leaves out may not use it") {
  CHECK_THAT(fault_after([](Plan& plan) { plan.communicators[2].pipeline_coordinates = 2; }),
             ContainsSubstring("is not a member of communicator pp{1}+dp"));
}

TEST_CASE("operand counts follow the table of operands.h") {
  // A few rows of every form, copied by hand from core/operands.h.
  CHECK(operand_counts(Work::kEmbedding) == OperandCounts{2, 2, 1, 1});
  CHECK(operand_counts(Work::kFlashAttentionGrad) == OperandCounts{4, 4, 1, 1});
  CHECK(operand_counts(Work::kCombineGrad) == OperandCounts{4, 4, 2, 2});
  CHECK(operand_counts(Work::kBnGradApply) == OperandCounts{6, 6, 3, 3});
  CHECK(operand_counts(Work::kLossLocalSums) == OperandCounts{3, 3, 2, 2});
  CHECK(operand_counts(Work::kExpectIssued) == OperandCounts{0, 0, 0, 0});
  CHECK(operand_counts(Work::kPack).allows(200, 1));
  CHECK_FALSE(operand_counts(Work::kPack).allows(0, 1));
  CHECK(operand_counts(Work::kUnpack).allows(1, 200));
  CHECK(operand_counts(Work::kAdamW).allows(4, 4));
  CHECK_FALSE(operand_counts(Work::kAdamW).allows(3, 3));
}
