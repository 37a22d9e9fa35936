#include "core/check/flag_agreement.h"
#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr AxisMask kPipeline = mask_of(Axis::kPipeline);
constexpr AxisMask kData = mask_of(Axis::kData);
constexpr AxisMask kTensor = mask_of(Axis::kTensor);

struct GuardCase {
  std::vector<AxisMask> reduced;  ///< the flag is reduced (max) over these, one after the other
  AxisMask guarded = 0;           ///< an all-reduce over these is guarded by it
  Reduction reduction = Reduction::kMax;
  bool rewritten = false;  ///< a compute writes the flag again before it is used
};

std::string guard_fault(const GuardCase& test) {
  const Plan plan = one_class_plan(
      [&](PlanBuilder& tables, ProgramBuilder& b) {
        const BufferId flag = b.alloc(Category::kTemporary, DType::kFp32, 1);
        const BufferId x = b.alloc(Category::kGradient, DType::kFp32, 4);
        b.compute(Work::kZero, {}, {}, {b.whole(flag)});
        b.compute(Work::kZero, {}, {}, {b.whole(x)});
        const auto reduce = [&](AxisMask axes, Reduction reduction, BufferId id, BufferId guard) {
          Extras extras = extras_on(Stream::kData);
          extras.guard = guard;
          b.collective(Collective::kAllReduce,
                       tables.communicator(axes),
                       reduction,
                       b.buffer(id).elements,
                       b.whole(id),
                       b.whole(id),
                       extras);
        };
        for (const AxisMask axes : test.reduced) {
          reduce(axes, test.reduction, flag, kNoBuffer);
        }
        if (test.rewritten) {
          b.compute(Work::kScale, {}, {b.whole(flag)}, {b.whole(flag)});
        }
        reduce(test.guarded, Reduction::kSum, x, flag);
        b.free(flag);
        b.free(x);
      },
      mesh_of(2, 2, 2));
  const PlanProblems problems = check_plan(plan);
  return problems.empty() ? std::string("none") : problems.list().front().message;
}

}  // namespace

TEST_CASE("a guard on a collective needs a flag reduced by maximum over its group") {
  CHECK(guard_fault({{kData}, kData}) == "none");
  CHECK(guard_fault({{kData | kTensor}, kData}) == "none");
  CHECK(guard_fault({{kTensor, kData}, kData | kTensor}) == "none");
  CHECK(guard_fault({{kPipeline | kData | kTensor}, kPipeline | kTensor}) == "none");
  CHECK_THAT(
      guard_fault({{kData}, kData | kTensor}),
      ContainsSubstring("all_reduce dp+tp 4 fp32 sum, init: members of dp+tp may differ in "
                        "whether they skip it: its flag, buffer 0, was reduced (max) over dp "
                        "only"));
  CHECK_THAT(guard_fault({{}, kData}), ContainsSubstring("was reduced (max) over nothing"));
  CHECK_THAT(guard_fault({{kData}, kPipeline}), ContainsSubstring("over dp only"));
}

TEST_CASE("a sum is no maximum, and a later local write ends the agreement") {
  CHECK_THAT(guard_fault({{kData}, kData, Reduction::kSum}),
             ContainsSubstring("was reduced (max) over nothing"));
  CHECK_THAT(guard_fault({{kData}, kData, Reduction::kMax, true}),
             ContainsSubstring("was reduced (max) over nothing"));
}

TEST_CASE("a guard on compute needs a flag that lives and was written, reduced or not") {
  const auto fault_of = [](const std::function<void(Program&)>& breaks) {
    Plan plan = one_class_plan([](PlanBuilder&, ProgramBuilder& b) {
      const BufferId flag = b.alloc(Category::kTemporary, DType::kFp32, 1);
      b.compute(Work::kZero, {}, {}, {b.whole(flag)});  // #1
      const BufferId x = b.alloc(Category::kGradient, DType::kFp32, 4);
      Extras extras;
      extras.guard = flag;
      b.compute(Work::kZero, {}, {}, {b.whole(x)}, extras);  // #3
      b.free(x);
      b.free(flag);
    });
    breaks(program_of(plan, 0, 0));
    const std::vector<PlanProblem> problems = problems_of(plan, PlanRule::kGuard);
    return problems.empty() ? std::string("none") : problems.front().message;
  };
  CHECK(fault_of([](Program&) {}) == "none");
  CHECK_THAT(fault_of([](Program& program) { remove_operation(program, 1); }),
             ContainsSubstring("#2: zero, init: its flag, buffer 0, was never written"));
  CHECK_THAT(fault_of([](Program& program) { remove_operation(program, 0); }),
             ContainsSubstring("its flag, buffer 0, is not allocated"));
  CHECK_THAT(fault_of([](Program& program) { program.operations[4].guard = 0; }),
             ContainsSubstring("memory cannot depend on a flag"));
}

TEST_CASE("agreement over some stages covers groups of these stages only") {
  const Mesh mesh = mesh_of(4, 2);
  FlagAgreement agreement;
  agreement.reduce({kPipeline, 0b1001, false});
  CHECK(agreement.covers(mesh, {kPipeline, 0b1001, false}));
  CHECK_FALSE(agreement.covers(mesh, {kPipeline, 0b0011, false}));
  CHECK_FALSE(agreement.covers(mesh, {kPipeline, 0, false}));
  CHECK_FALSE(agreement.covers(mesh, {kPipeline | kData, 0b1001, false}));
  agreement.reduce({kData, 0, false});
  CHECK(agreement.covers(mesh, {kPipeline | kData, 0b1001, false}));
  agreement.reduce({kPipeline, 0, false});
  CHECK(agreement.covers(mesh, {kPipeline | kData, 0, false}));
  agreement.reduce({kPipeline, 0b0011, false});
  CHECK(agreement.covers(mesh, {kPipeline, 0, false}));
}

TEST_CASE("axes of size one need no agreement") {
  CHECK(FlagAgreement().covers(mesh_of(1, 1, 1), {kPipeline | kData | kTensor, 0, false}));
  CHECK_FALSE(FlagAgreement().covers(mesh_of(1, 2, 1), {kData, 0, false}));
}
