#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A step that writes `view` (its buffer id is filled in) of a buffer of 64 elements.
std::string fault_of_view(const Mesh& mesh, View view) {
  const Plan plan = one_class_plan(
      [&](PlanBuilder&, ProgramBuilder& b) {
        view.buffer = b.alloc(Category::kTemporary, DType::kBf16, 64);
        b.compute(Work::kZero, {{view.elements}}, {}, {view});
        b.free(view.buffer);
      },
      mesh);
  const std::vector<PlanProblem> problems = problems_of(plan, PlanRule::kBounds);
  return problems.empty() ? std::string("none") : problems.front().message;
}

struct CollectiveCase {
  Collective kind;
  std::int64_t input;
  std::int64_t output;
};

/// A collective of 16 elements over dp 4 whose sides have the given sizes.
std::string fault_of_collective(const CollectiveCase& test) {
  const Plan plan = one_class_plan(
      [&](PlanBuilder& tables, ProgramBuilder& b) {
        const std::uint8_t data = tables.communicator(mask_of(Axis::kData));
        const BufferId from = b.alloc(Category::kTemporary, DType::kBf16, test.input);
        const BufferId to = b.alloc(Category::kTemporary, DType::kBf16, test.output);
        b.compute(Work::kZero, {{test.input}}, {}, {b.whole(from)});
        Extras extras = extras_on(Stream::kData);
        const bool rooted = test.kind == Collective::kBroadcast ||
                            test.kind == Collective::kReduce || test.kind == Collective::kGather ||
                            test.kind == Collective::kScatter;
        extras.root = rooted ? 0 : -1;
        const bool reduces = test.kind == Collective::kAllReduce ||
                             test.kind == Collective::kReduceScatter ||
                             test.kind == Collective::kReduce;
        b.collective(test.kind,
                     data,
                     reduces ? Reduction::kSum : Reduction::kNone,
                     16,
                     b.whole(from),
                     b.whole(to),
                     extras);
        b.free(from);
        b.free(to);
      },
      mesh_of(1, 4));
  const PlanProblems problems = check_plan(plan);
  return problems.empty() ? std::string("none") : problems.list().front().message;
}

}  // namespace

TEST_CASE("a view must lie inside its buffer") {
  const Mesh mesh = mesh_of(1, 2);
  CHECK(fault_of_view(mesh, {0, Axis::kNone, 0, 64, 0}) == "none");
  CHECK(fault_of_view(mesh, {0, Axis::kNone, 64, 0, 0}) == "none");
  CHECK_THAT(fault_of_view(mesh, {0, Axis::kNone, 1, 64, 0}),
             ContainsSubstring("zero 64, init: view [1, 65) lies outside buffer 0 of 64 elements"));
  CHECK_THAT(fault_of_view(mesh, {0, Axis::kNone, -1, 2, 0}), ContainsSubstring("view [-1, 1)"));
  CHECK_THAT(fault_of_view(mesh, {0, Axis::kNone, 8, -4, 0}), ContainsSubstring("view [8, 4)"));
}

TEST_CASE("a slice must lie inside its buffer for every coordinate of its axis") {
  // 64 elements in 4 slices of 16; 5 slices are one too many.
  const View slice{0, Axis::kData, 0, 16, 16};
  CHECK(fault_of_view(mesh_of(1, 4), slice) == "none");
  CHECK_THAT(fault_of_view(mesh_of(1, 5), slice), ContainsSubstring("view [0, 80)"));
  CHECK(fault_of_view(mesh_of(1, 4), {0, Axis::kData, 48, 16, -16}) == "none");
  CHECK_THAT(fault_of_view(mesh_of(1, 5), {0, Axis::kData, 48, 16, -16}),
             ContainsSubstring("view [-16, 64)"));
  // Along an axis of size 1 only the offset counts.
  CHECK(fault_of_view(mesh_of(1, 9), {0, Axis::kTensor, 0, 64, 64}) == "none");
}

TEST_CASE("where classes are by the axis, only the coordinate of the class counts") {
  PlanBuilder tables(mesh_of(1, 3), nullptr);
  Plan& plan = tables.plan();
  plan.class_axes = mask_of(Axis::kData);
  plan.variant_of_iteration = {0};
  plan.sections = {{SectionKind::kStep, 0, {}}};
  for (int owner = 0; owner < 3; ++owner) {
    ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
    b.begin_section();
    // Coordinate c needs 8 * (c + 1) elements; class 2 has too few.
    const BufferId buffer =
        b.alloc(Category::kTemporary, DType::kFp32, owner == 2 ? 16 : 8 * (owner + 1));
    b.compute(Work::kZero, {{8}}, {}, {ProgramBuilder::slice(buffer, Axis::kData, 8)});
    b.free(buffer);
    plan.sections[0].programs.push_back(b.end_section());
    plan.buffers.push_back(b.take_buffers());
  }
  const std::vector<PlanProblem> problems = problems_of(plan, PlanRule::kBounds);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].class_index == 2);
  CHECK_THAT(problems[0].message, ContainsSubstring("view [16, 24) lies outside"));
}

TEST_CASE("both sides of a collective are as long as its kind demands") {
  // 16 elements over 4 members.
  const CollectiveCase right[] = {{Collective::kAllReduce, 16, 16},
                                  {Collective::kAllGather, 16, 64},
                                  {Collective::kReduceScatter, 64, 16},
                                  {Collective::kBroadcast, 16, 16},
                                  {Collective::kReduce, 16, 16},
                                  {Collective::kGather, 16, 64},
                                  {Collective::kScatter, 64, 16},
                                  {Collective::kAllToAll, 16, 16}};
  for (const CollectiveCase& test : right) {
    INFO(name_of(test.kind));
    CHECK(fault_of_collective(test) == "none");
    CHECK_THAT(
        fault_of_collective({test.kind, test.input + 1, test.output}),
        ContainsSubstring("input has " + std::to_string(test.input + 1) + " elements instead of " +
                          std::to_string(test.input) + " (4 members)"));
    CHECK_THAT(fault_of_collective({test.kind, test.input, test.output - 1}),
               ContainsSubstring("output has " + std::to_string(test.output - 1) + " elements"));
  }
}

TEST_CASE("buffers of a message have its type") {
  Plan plan = two_stage_plan();
  // Buffer 3 is the flag; its maximum is declared as fp32 on both stages.
  plan.buffers[0][3].dtype = DType::kInt32;
  plan.buffers[1][3].dtype = DType::kInt32;
  const std::vector<PlanProblem> problems = problems_of(plan, PlanRule::kBounds);
  REQUIRE(problems.size() == 2);
  CHECK_THAT(problems[0].message,
             ContainsSubstring("all_reduce pp+dp 1 fp32 max") &&
                 ContainsSubstring("buffer 3 is int32, the message fp32"));
}

TEST_CASE("the view of a send is as long as the message") {
  Plan plan = two_stage_plan();
  for (int stage = 0; stage < 2; ++stage) {
    Program& program = program_of(plan, kStepSection, stage);
    for (Operation& op : program.operations) {
      if ((op.kind == OperationKind::kSend || op.kind == OperationKind::kRecv) && op.tag == 0) {
        op.elements = 31;
      }
    }
  }
  const std::vector<PlanProblem> problems = problems_of(plan, PlanRule::kBounds);
  REQUIRE(problems.size() == 2);
  CHECK_THAT(problems[0].message, ContainsSubstring("its view has 32 elements, the message 31"));
}
