#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// One step on a line of stages; `emit(builder, communicator, stage)` writes each stage's part.
Plan pipeline_plan(int stages,
                   const std::function<void(ProgramBuilder&, std::uint8_t, int)>& emit) {
  PlanBuilder tables(mesh_of(stages, 2), two_layer_graph());
  const std::uint8_t pipeline = tables.communicator(mask_of(Axis::kPipeline));
  Plan& plan = tables.plan();
  plan.class_axes = mask_of(Axis::kPipeline);
  plan.variant_of_iteration = {0};
  plan.sections = {{SectionKind::kStep, 0, {}}};
  for (int stage = 0; stage < stages; ++stage) {
    ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
    b.begin_section();
    b.at(Phase::kForward, stage == 0 ? 0 : 1, 0);
    emit(b, pipeline, stage);
    plan.sections[0].programs.push_back(b.end_section());
    plan.buffers.push_back(b.take_buffers());
  }
  return plan;
}

BufferId written(ProgramBuilder& b) {
  const BufferId buffer = b.alloc(Category::kActivation, DType::kFp32, 4);
  b.compute(Work::kZero, {{4}}, {}, {b.whole(buffer)});
  return buffer;
}

std::string deadlock_of(const Plan& plan) {
  const std::vector<PlanProblem> problems = problems_of(plan, PlanRule::kDeadlock);
  return problems.empty() ? std::string("none") : problems.front().message;
}

}  // namespace

TEST_CASE("two stages that both send first wait for each other, printed as a circle") {
  const Plan plan = pipeline_plan(2, [](ProgramBuilder& b, std::uint8_t pipeline, int stage) {
    const BufferId out = written(b);
    const BufferId in = b.alloc(Category::kActivation, DType::kFp32, 4);
    b.send(pipeline, 1 - stage, 7, b.whole(out));
    b.recv(pipeline, 1 - stage, 7, b.whole(in));
    b.free(out);
    b.free(in);
  });
  CHECK(deadlock_of(plan) ==
        "step cannot go on:\n"
        "  rank 0 #3 send to stage 1 4 fp32 tag 7, h.0.mlp, micro-batch 0, forward waits for rank "
        "2's recv #4\n"
        "  rank 2 #4 recv from stage 0 4 fp32 tag 7, h.1.mlp, micro-batch 0, forward is behind #3 "
        "on communicator pp\n"
        "  rank 2 #3 send to stage 0 4 fp32 tag 7, h.1.mlp, micro-batch 0, forward waits for rank "
        "0's recv #4\n"
        "  rank 0 #4 recv from stage 1 4 fp32 tag 7, h.0.mlp, micro-batch 0, forward is behind #3 "
        "on communicator pp");
}

TEST_CASE("one stage sends first and the other receives first: no deadlock") {
  const Plan plan = pipeline_plan(2, [](ProgramBuilder& b, std::uint8_t pipeline, int stage) {
    const BufferId out = written(b);
    const BufferId in = b.alloc(Category::kActivation, DType::kFp32, 4);
    if (stage == 0) {
      b.send(pipeline, 1, 7, b.whole(out));
    }
    b.recv(pipeline, 1 - stage, 7, b.whole(in));
    if (stage == 1) {
      b.send(pipeline, 0, 7, b.whole(out));
    }
    b.free(out);
    b.free(in);
  });
  CHECK(check_plan(plan).text() == "no problems");
}

TEST_CASE("a ring of sends on three stages is found, a ring broken at one stage is not") {
  const auto ring = [](bool broken) {
    return pipeline_plan(3, [broken](ProgramBuilder& b, std::uint8_t pipeline, int stage) {
      const BufferId out = written(b);
      const BufferId in = b.alloc(Category::kActivation, DType::kFp32, 4);
      const int next = (stage + 1) % 3;
      const int previous = (stage + 2) % 3;
      if (broken && stage == 2) {
        b.recv(pipeline, previous, 1, b.whole(in));
        b.send(pipeline, next, 1, b.whole(out));
      } else {
        b.send(pipeline, next, 1, b.whole(out));
        b.recv(pipeline, previous, 1, b.whole(in));
      }
      b.free(out);
      b.free(in);
    });
  };
  CHECK(check_plan(ring(true)).text() == "no problems");
  const std::string message = deadlock_of(ring(false));
  CHECK_THAT(message, ContainsSubstring("rank 0 #3 send to stage 1"));
  CHECK_THAT(message, ContainsSubstring("waits for rank 2's recv #4"));
  CHECK_THAT(message, ContainsSubstring("waits for rank 4's recv #4"));
  CHECK_THAT(message, ContainsSubstring("waits for rank 0's recv #4"));
}

namespace {

/// Two collectives over tp and dp in different orders on the two classes of tp: each sequence is
/// the same on all members, yet the groups cross.
Plan crossed_plan(bool crossed, bool two_streams) {
  PlanBuilder tables(mesh_of(1, 2, 2), two_layer_graph());
  const std::uint8_t tensor = tables.communicator(mask_of(Axis::kTensor));
  const std::uint8_t both = tables.communicator(mask_of(Axis::kTensor) | mask_of(Axis::kData));
  Plan& plan = tables.plan();
  plan.class_axes = mask_of(Axis::kTensor);
  plan.variant_of_iteration = {0};
  plan.sections = {{SectionKind::kStep, 0, {}}};
  for (int coordinate = 0; coordinate < 2; ++coordinate) {
    ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
    b.begin_section();
    b.at(Phase::kReduce, 0);
    const BufferId one = written(b);
    const BufferId two = written(b);
    const auto reduce = [&](std::uint8_t communicator, BufferId buffer, Stream stream) {
      b.collective(Collective::kAllReduce,
                   communicator,
                   Reduction::kSum,
                   4,
                   b.whole(buffer),
                   b.whole(buffer),
                   extras_on(stream));
    };
    const Stream second = two_streams ? Stream::kData : Stream::kTensor;
    if (crossed && coordinate == 1) {
      reduce(both, two, second);
      reduce(tensor, one, Stream::kTensor);
    } else {
      reduce(tensor, one, Stream::kTensor);
      reduce(both, two, second);
    }
    b.free(one);
    b.free(two);
    plan.sections[0].programs.push_back(b.end_section());
    plan.buffers.push_back(b.take_buffers());
  }
  return plan;
}

}  // namespace

TEST_CASE("collectives of two communicators in opposite order on one stream deadlock") {
  CHECK(problems_of(crossed_plan(true, false), PlanRule::kSequence).empty());
  const std::string message = deadlock_of(crossed_plan(true, false));
  CHECK_THAT(message,
             ContainsSubstring("all_reduce tp 4 fp32 sum, h.0.mlp, reduce waits for rank 1's #5"));
  CHECK_THAT(message, ContainsSubstring("is behind #4 on stream tensor"));
  CHECK(check_plan(crossed_plan(false, false)).text() == "no problems");
}

TEST_CASE("on streams of their own, opposite orders of two communicators do not deadlock") {
  CHECK(check_plan(crossed_plan(true, true)).text() == "no problems");
}

TEST_CASE("a host that waits for a result before it issues what makes it deadlocks") {
  // Coordinate 0: sum over tp, read by the host, then sum over tp x dp. Coordinate 1: sum over
  // tp x dp first, and the sum over tp is of its result.
  const auto plan_with = [](std::uint16_t flags) {
    PlanBuilder tables(mesh_of(1, 2, 2), two_layer_graph());
    const std::uint8_t tensor = tables.communicator(mask_of(Axis::kTensor));
    const std::uint8_t both = tables.communicator(mask_of(Axis::kTensor) | mask_of(Axis::kData));
    Plan plan;
    for (int coordinate = 0; coordinate < 2; ++coordinate) {
      ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
      b.begin_section();
      b.at(Phase::kReduce, 0);
      const BufferId one = written(b);
      const BufferId two = coordinate == 0 ? written(b) : one;
      const View first = b.whole(one);
      const View second = b.whole(two);
      const auto sum = [&](std::uint8_t communicator, const View& view, Stream stream) {
        b.collective(Collective::kAllReduce,
                     communicator,
                     Reduction::kSum,
                     4,
                     view,
                     view,
                     extras_on(stream));
      };
      if (coordinate == 0) {
        sum(tensor, first, Stream::kTensor);
        Extras extras;
        extras.flags = flags;
        b.host(Work::kReadScalar, {}, Views(&first, 1), Views(), extras);
        sum(both, second, Stream::kData);
        b.free(two);
      } else {
        sum(both, second, Stream::kData);
        sum(tensor, first, Stream::kTensor);
      }
      b.free(one);
      tables.plan().sections.resize(1);
      tables.plan().sections[0].programs.push_back(b.end_section());
      tables.plan().buffers.push_back(b.take_buffers());
    }
    plan = tables.plan();
    plan.class_axes = mask_of(Axis::kTensor);
    plan.variant_of_iteration = {0};
    return plan;
  };
  CHECK(check_plan(plan_with(0)).text() == "no problems");
  const std::string message = deadlock_of(plan_with(kHostSync));
  CHECK_THAT(message, ContainsSubstring("is not issued: the host of rank 0 waits for #5"));
  CHECK_THAT(message,
             ContainsSubstring("read_scalar, h.0.mlp, reduce waits for its dependency #4"));
  CHECK_THAT(message, ContainsSubstring("waits for rank 1's #3"));
  CHECK_THAT(message, ContainsSubstring("waits for its dependency #2"));
}

TEST_CASE("an operation that needs one that never launches is reported") {
  Plan plan = pipeline_plan(1, [](ProgramBuilder& b, std::uint8_t pipeline, int) {
    const BufferId bucket = written(b);
    Extras extras = extras_on(Stream::kData);
    extras.issue = Issue::kWhenReady;
    b.collective(Collective::kAllReduce,
                 pipeline,
                 Reduction::kSum,
                 4,
                 b.whole(bucket),
                 b.whole(bucket),
                 extras);
    b.compute(Work::kScale, {{4}}, {b.whole(bucket)}, {b.whole(bucket)});
    b.free(bucket);
  });
  CHECK(check_plan(plan).text() == "no problems");
  Program& program = program_of(plan, 0, 0);
  Operation& op = program.operations[find_operation(program, is_kind(OperationKind::kCollective))];
  op.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
  op.dependencies = 1;
  program.dependencies.push_back(kNeverIssued);
  CHECK_THAT(deadlock_of(plan),
             ContainsSubstring("scale 4, h.0.mlp, micro-batch 0, forward waits for #2, which never "
                               "launches"));
}
