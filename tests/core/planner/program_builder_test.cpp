#include "core/planner/program_builder.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"

using namespace lockstep;

namespace {

/// A builder in the middle of its first section, with operations of one line.
struct Bench {
  PlanBuilder tables{Mesh{}, nullptr};
  ProgramBuilder b{tables, ProgramBuilder::Mode::kEmit};
  Bench() { b.begin_section(); }

  BufferId buffer(std::int64_t elements = 4) {
    return b.alloc(Category::kActivation, DType::kFp32, elements);
  }
  OperationId run(Stream stream, std::vector<BufferId> reads, std::vector<BufferId> writes) {
    std::vector<View> inputs;
    std::vector<View> outputs;
    for (const BufferId id : reads) {
      inputs.push_back(b.whole(id));
    }
    for (const BufferId id : writes) {
      outputs.push_back(b.whole(id));
    }
    return b.compute(Work::kAdd, Shape{{1}}, inputs, outputs, {.stream = stream});
  }
  std::vector<std::uint32_t> dependencies(const Program& program, OperationId id) const {
    const auto span = program.dependencies_of(program.operations[id]);
    return {span.begin(), span.end()};
  }
};

using Ids = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("A reader on another stream waits for the writer") {
  Bench bench;
  const BufferId x = bench.buffer();
  const BufferId y = bench.buffer();
  const OperationId write = bench.run(Stream::kCompute, {}, {x});
  const OperationId read = bench.run(Stream::kTensor, {x}, {y});
  const OperationId again = bench.run(Stream::kTensor, {x}, {y});
  const Program program = bench.b.end_section();
  CHECK(bench.dependencies(program, write).empty());
  CHECK(bench.dependencies(program, read) == Ids{write});
  CHECK(bench.dependencies(program, again).empty());  // the stream has waited already
}

TEST_CASE("A writer waits for the last reader on every other stream") {
  Bench bench;
  const BufferId x = bench.buffer();
  const OperationId write = bench.run(Stream::kCompute, {}, {x});
  bench.run(Stream::kTensor, {x}, {});
  const OperationId reader = bench.run(Stream::kTensor, {x}, {});
  const OperationId other = bench.run(Stream::kData, {x}, {});
  const OperationId overwrite = bench.run(Stream::kCompute, {}, {x});
  const Program program = bench.b.end_section();
  Ids expected{reader, other};
  Ids found = bench.dependencies(program, overwrite);
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  CHECK(found == expected);
  CHECK(bench.dependencies(program, other) == Ids{write});
}

TEST_CASE("A writer waits for the writer before it on another stream") {
  Bench bench;
  const BufferId x = bench.buffer();
  const OperationId first = bench.run(Stream::kData, {}, {x});
  const OperationId second = bench.run(Stream::kCompute, {}, {x});
  const OperationId read = bench.run(Stream::kData, {x}, {});
  const Program program = bench.b.end_section();
  CHECK(bench.dependencies(program, second) == Ids{first});
  CHECK(bench.dependencies(program, read) == Ids{second});
}

TEST_CASE("Operations of one stream need no dependencies") {
  Bench bench;
  const BufferId x = bench.buffer();
  for (int i = 0; i < 5; ++i) {
    bench.run(Stream::kCompute, {x}, {x});
  }
  bench.b.free(x);
  const Program program = bench.b.end_section();
  CHECK(program.dependencies.empty());
}

TEST_CASE(
    "A free waits for nothing; the compute stream waits where it is told to, and remembers it") {
  Bench bench;
  const BufferId x = bench.buffer();
  const OperationId sum = bench.run(Stream::kData, {}, {x});
  const OperationId shown = bench.run(Stream::kData, {x}, {});
  bench.b.free(x);
  const OperationId free = bench.b.next_operation() - 1;
  const BufferId y = bench.buffer();
  const OperationId late = bench.run(Stream::kPipeline, {}, {y});
  bench.b.wait(shown);
  const OperationId read = bench.run(Stream::kCompute, {y}, {});
  bench.b.wait(sum);  // before what was waited for already
  const OperationId again = bench.run(Stream::kCompute, {y}, {});
  const Program program = bench.b.end_section();
  CHECK(program.operations[free].kind == OperationKind::kFree);
  CHECK(bench.dependencies(program, free) == Ids{});
  CHECK(bench.dependencies(program, read) == Ids{late, shown});
  CHECK(bench.dependencies(program, again) == Ids{});
}

TEST_CASE("Explicit dependencies are added to the inferred ones") {
  Bench bench;
  const BufferId x = bench.buffer();
  const BufferId y = bench.buffer();
  const OperationId unrelated = bench.run(Stream::kData, {x}, {});
  const OperationId after[] = {unrelated, kNoOperation};
  const View view = bench.b.whole(y);
  const OperationId gather = bench.b.compute(
      Work::kZero, Shape{}, {}, {view}, {.stream = Stream::kCompute, .after = after});
  const Program program = bench.b.end_section();
  CHECK(bench.dependencies(program, gather) == Ids{unrelated});
}

TEST_CASE("A guard is read: the flag's writer comes before, its next writer after") {
  Bench bench;
  const BufferId flag = bench.buffer(1);
  const BufferId x = bench.buffer();
  const OperationId check = bench.run(Stream::kCompute, {}, {flag});
  const View view = bench.b.whole(x);
  const OperationId guarded = bench.b.compute(
      Work::kSgd, Shape{}, {view}, {view}, {.stream = Stream::kData, .guard = flag});
  const OperationId reset = bench.run(Stream::kCompute, {}, {flag});
  const Program program = bench.b.end_section();
  CHECK(bench.dependencies(program, guarded) == Ids{check});
  CHECK(bench.dependencies(program, reset) == Ids{guarded});
  CHECK(program.operations[guarded].guard == flag);
}

TEST_CASE("An alias shares the memory, and so the dependencies, of its lender") {
  Bench bench;
  const BufferId bucket = bench.b.alloc(Category::kCommunication, DType::kFp32, 8);
  const BufferId gradient =
      bench.b.alloc(Category::kGradient, DType::kFp32, 4, {.alias_of = bucket, .alias_offset = 4});
  CHECK(bench.b.held(Category::kGradient) == 0);
  CHECK(bench.b.held(Category::kCommunication) == 32);
  const OperationId write = bench.run(Stream::kCompute, {}, {gradient});
  const OperationId reduce = bench.run(Stream::kData, {bucket}, {bucket});
  const OperationId read = bench.run(Stream::kCompute, {gradient}, {});
  const Program program = bench.b.end_section();
  CHECK(bench.dependencies(program, reduce) == Ids{write});
  CHECK(bench.dependencies(program, read) == Ids{reduce});
}

TEST_CASE("Every pair of conflicting operations is ordered, in random programs") {
  std::mt19937_64 random(test::test_seed());
  const auto pick = [&](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  for (int round = 0; round < test::scaled(100); ++round) {
    Bench bench;
    std::vector<BufferId> buffers;
    for (int i = 0; i < 4; ++i) {
      buffers.push_back(bench.buffer());
    }
    struct Use {
      OperationId id;
      std::vector<BufferId> reads, writes;
    };
    std::vector<Use> uses;
    for (int i = 0; i < 40; ++i) {
      Use use;
      for (const BufferId id : buffers) {
        const int what = pick(6);
        if (what == 0) {
          use.writes.push_back(id);
        } else if (what == 1) {
          use.reads.push_back(id);
        }
      }
      use.id = bench.run(static_cast<Stream>(pick(7)), use.reads, use.writes);
      uses.push_back(use);
    }
    const Program program = bench.b.end_section();
    // before[i] = operations that are done when i starts: stream predecessors and dependencies.
    std::vector<std::set<OperationId>> before(program.operations.size());
    std::map<Stream, OperationId> last;
    for (OperationId id = 0; id < program.operations.size(); ++id) {
      const Operation& op = program.operations[id];
      Ids direct = bench.dependencies(program, id);
      if (last.count(op.stream) != 0) {
        direct.push_back(last[op.stream]);
      }
      for (const OperationId d : direct) {
        REQUIRE(d < id);
        before[id].insert(d);
        before[id].insert(before[d].begin(), before[d].end());
      }
      last[op.stream] = id;
    }
    const auto meet = [](const std::vector<BufferId>& a, const std::vector<BufferId>& b) {
      return std::any_of(a.begin(), a.end(), [&](BufferId id) {
        return std::find(b.begin(), b.end(), id) != b.end();
      });
    };
    for (std::size_t j = 0; j < uses.size(); ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        const bool conflict = meet(uses[i].writes, uses[j].reads) ||
                              meet(uses[i].reads, uses[j].writes) ||
                              meet(uses[i].writes, uses[j].writes);
        REQUIRE((!conflict || before[uses[j].id].count(uses[i].id) == 1));
      }
    }
  }
}

TEST_CASE("The id of a freed step buffer is used again for an equal one only") {
  Bench bench;
  const BufferId x = bench.buffer(4);
  bench.b.free(x);
  CHECK(bench.buffer(5) != x);
  CHECK(bench.b.alloc(Category::kGradient, DType::kFp32, 4) != x);
  CHECK(bench.b.alloc(Category::kActivation, DType::kBf16, 4) != x);
  CHECK(bench.b.alloc(Category::kActivation, DType::kFp32, 4, {.storage = Storage::kHost}) != x);
  CHECK(bench.b.alloc(Category::kActivation, DType::kFp32, 4, {.parameter = 3}) != x);
  CHECK(bench.b.alloc(
            Category::kActivation, DType::kFp32, 4, {.lifetime = Lifetime::kPersistent}) != x);
  CHECK(bench.buffer(4) == x);
  CHECK(bench.buffer(4) != x);  // it is live
}

TEST_CASE("A thousand steps of equal buffers need one table entry each") {
  Bench bench;
  for (int i = 0; i < 1000; ++i) {
    const BufferId x = bench.buffer(3);
    const BufferId y = bench.buffer(4);
    bench.run(Stream::kCompute, {x}, {y});
    bench.b.free(x);
    bench.b.free(y);
  }
  bench.b.end_section();
  CHECK(bench.b.take_buffers().size() == 2);
}

TEST_CASE("Freeing twice and using a buffer after its free are refused") {
  Bench bench;
  const BufferId x = bench.buffer();
  bench.b.free(x);
  CHECK_THROWS_AS(bench.b.free(x), InternalError);
  CHECK_THROWS_AS(bench.run(Stream::kCompute, {x}, {}), InternalError);
  CHECK_THROWS_AS(bench.run(Stream::kCompute, {}, {x}), InternalError);
  PlanBuilder tables(Mesh{}, nullptr);
  ProgramBuilder counting(tables, ProgramBuilder::Mode::kCount);
  counting.begin_section();
  const BufferId y = counting.alloc(Category::kActivation, DType::kFp32, 4);
  counting.free(y);
  CHECK_THROWS_AS(counting.free(y), InternalError);
}

TEST_CASE("A plan of more layouts than operations can name is refused with what to reduce") {
  PlanBuilder tables(Mesh{}, nullptr);
  for (int i = 0; i < kNoLayout; ++i) {
    tables.layout({});
  }
  CHECK_THROWS_AS(tables.layout({}), NotSupportedError);
  CHECK_THROWS_WITH(tables.layout({}),
                    Catch::Contains("65535 layouts") && Catch::Contains("layers"));
}

TEST_CASE("A buffer with several owners is freed by the last release") {
  Bench bench;
  const BufferId x = bench.buffer();
  bench.b.retain(x);
  CHECK_FALSE(bench.b.sole_owner(x));
  bench.b.release(x);
  CHECK(bench.b.live(x));
  CHECK(bench.b.sole_owner(x));
  bench.b.release(x);
  CHECK_FALSE(bench.b.live(x));
  CHECK(total(bench.b.held()) == 0);
}

TEST_CASE("An operation is one cache line, and carries its context, operands and group") {
  STATIC_REQUIRE(sizeof(Operation) == 64);
  Bench bench;
  const std::uint8_t group = bench.tables.communicator(mask_of(Axis::kTensor));
  const BufferId x = bench.b.alloc(Category::kActivation, DType::kBf16, 8);
  const BufferId y = bench.b.alloc(Category::kActivation, DType::kBf16, 16);
  bench.b.at(Phase::kBackward, 7, 3);
  const OperationId gather = bench.b.collective(Collective::kAllGather,
                                                group,
                                                Reduction::kNone,
                                                8,
                                                bench.b.whole(x),
                                                bench.b.whole(y),
                                                {.stream = Stream::kTensor, .flags = kControl});
  const View slice = ProgramBuilder::slice(y, Axis::kTensor, 8);
  const OperationId in_place = bench.b.collective(Collective::kReduceScatter,
                                                  group,
                                                  Reduction::kSum,
                                                  8,
                                                  bench.b.whole(y),
                                                  slice,
                                                  {.stream = Stream::kTensor});
  const OperationId send = bench.b.send(group, 2, 99, bench.b.whole(x));
  const Program program = bench.b.end_section();
  const Operation& op = program.operations[gather];
  CHECK(op.phase == Phase::kBackward);
  CHECK(op.module == 7);
  CHECK(op.microbatch == 3);
  CHECK(op.dtype == DType::kBf16);
  CHECK(op.elements == 8);
  CHECK(op.communicator == group);
  CHECK(op.has(kControl));
  CHECK_FALSE(op.has(kInPlace));
  CHECK(program.inputs_of(op)[0].buffer == x);
  CHECK(program.outputs_of(op)[0].elements == 16);
  CHECK(program.operations[in_place].has(kInPlace));
  CHECK(program.outputs_of(program.operations[in_place])[0].stride == 8);
  CHECK(program.operations[send].peer == 2);
  CHECK(program.operations[send].tag == 99);
  CHECK(program.operations[send].elements == 8);
  CHECK(program.operations[send].stream == Stream::kPipeline);
}

TEST_CASE("Equal communicators, shapes and scalars have one index") {
  PlanBuilder tables(Mesh{}, nullptr);
  const AxisMask tensor = mask_of(Axis::kTensor);
  CHECK(tables.communicator(tensor) == tables.communicator(tensor));
  CHECK(tables.communicator(tensor) != tables.communicator(tensor, 0, true));
  CHECK(tables.communicator(tensor, 5) != tables.communicator(tensor, 3));
  CHECK(tables.shape(Shape{}) != 0);  // 0 is "no shape"
  CHECK(tables.shape(Shape{{1, 2}}) == tables.shape(Shape{{1, 2}}));
  CHECK(tables.shape(Shape{{1, 2}}) != tables.shape(Shape{{2, 1}}));
  CHECK(tables.factor(1, 8) == tables.factor(1, 8));
  CHECK(tables.factor(1, 8) != tables.factor(1, 4));
  CHECK(tables.plan().scalars[tables.factor(1, 8)].value() == 0.125);
}

TEST_CASE("Loops run all their indices when emitting, up or down") {
  Bench bench;
  std::vector<std::int64_t> seen;
  bench.b.repeat(4, [&](std::int64_t i) { seen.push_back(i); });
  bench.b.repeat_reverse(3, [&](std::int64_t i) { seen.push_back(i); });
  bench.b.repeat(0, [&](std::int64_t i) { seen.push_back(i); });
  CHECK(seen == std::vector<std::int64_t>{0, 1, 2, 3, 2, 1, 0});
  CHECK(bench.b.slot(7, 9) == 7);
}

TEST_CASE("Loops run first, one middle and last index when counting") {
  PlanBuilder tables(Mesh{}, nullptr);
  ProgramBuilder b(tables, ProgramBuilder::Mode::kCount);
  b.begin_section();
  std::vector<std::int64_t> seen;
  b.repeat(9, [&](std::int64_t i) { seen.push_back(i); });
  b.repeat_reverse(9, [&](std::int64_t i) { seen.push_back(i); });
  b.repeat(2, [&](std::int64_t i) { seen.push_back(i); });
  CHECK(seen == std::vector<std::int64_t>{0, 1, 8, 8, 1, 0, 0, 1});
  CHECK(b.slot(0, 9) == 0);
  CHECK(b.slot(5, 9) == 1);
  CHECK(b.slot(8, 9) == 8);
}

TEST_CASE("A replayed fragment leaves the context that its run would have left") {
  for (const auto mode : {ProgramBuilder::Mode::kEmit, ProgramBuilder::Mode::kCount}) {
    PlanBuilder tables(Mesh{}, nullptr);
    ProgramBuilder b(tables, mode);
    b.begin_section();
    for (std::int32_t microbatch = 0; microbatch < 4; ++microbatch) {
      b.once_per(1, {kNoModule, microbatch}, [&] { b.at(Phase::kForward, 20, microbatch); });
      b.once_per(2, {30, microbatch}, [&] { b.at(Phase::kBackward, 31, microbatch); });
      CHECK(b.phase() == Phase::kBackward);
      CHECK(b.module() == 31);
      CHECK(b.microbatch() == microbatch);
    }
  }
}

TEST_CASE("Memory is counted when the program passes alloc and free, on the device only") {
  Bench bench;
  const BufferId x = bench.b.alloc(Category::kOptimizer, DType::kFp32, 10);
  const BufferId host =
      bench.b.alloc(Category::kOptimizer, DType::kFp32, 10, {.storage = Storage::kPinned});
  CHECK(bench.b.held(Category::kOptimizer) == 40);
  bench.b.free(host);
  CHECK(bench.b.held(Category::kOptimizer) == 40);
  bench.b.free(x);
  CHECK(bench.b.held(Category::kOptimizer) == 0);
}
