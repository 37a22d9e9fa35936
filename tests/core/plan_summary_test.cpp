#include "core/plan_summary.h"

#include "core/planner/program_builder.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

std::int64_t bytes_of(const CategoryBytes& bytes, Category category) {
  return bytes[static_cast<std::size_t>(category)];
}

}  // namespace

TEST_CASE("The summary of a forward and backward of one product, by hand") {
  // Weight 100 fp32; x 40, y 80 in bf16; dy 80, dx 40 in bf16; gradient 100 fp32.
  PlanBuilder tables(Mesh{}, nullptr);
  ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
  const AllocOptions persistent{.lifetime = Lifetime::kPersistent};
  const Shape shape{{4, 20, 10}};

  b.begin_section();
  b.at(Phase::kInit);
  const BufferId w = b.alloc(Category::kParameter, DType::kFp32, 100, persistent);
  b.compute(Work::kInitialize, Shape{{100}}, {}, {b.whole(w)});
  const Program init = b.end_section();

  b.begin_section();
  b.at(Phase::kForward, 5, 0);
  const BufferId host = b.alloc(Category::kInput, DType::kInt64, 1000, {.storage = Storage::kHost});
  const BufferId x = b.alloc(Category::kActivation, DType::kBf16, 40);
  b.compute(Work::kZero, Shape{{40}}, {}, {b.whole(x)});
  const BufferId y = b.alloc(Category::kActivation, DType::kBf16, 80);
  b.compute(Work::kMatmul, shape, {b.whole(x), b.whole(w)}, {b.whole(y)});
  b.at(Phase::kBackward, 6, 0);
  const BufferId dy = b.alloc(Category::kTemporary, DType::kBf16, 80);
  b.compute(Work::kCast, Shape{{80}}, {b.whole(y)}, {b.whole(dy)});
  b.free(y);
  const BufferId g = b.alloc(Category::kGradient, DType::kFp32, 100, persistent);
  const BufferId dx = b.alloc(Category::kTemporary, DType::kBf16, 40);
  b.compute(Work::kMatmulGradInput, shape, {b.whole(dy), b.whole(w)}, {b.whole(dx)});
  b.compute(Work::kMatmulGradWeight, shape, {b.whole(dy), b.whole(x)}, {b.whole(g)});
  b.compute(Work::kMatmulGradWeight,
            shape,
            {b.whole(dy), b.whole(x)},
            {b.whole(g)},
            {.flags = kAccumulate});
  for (const BufferId id : {dx, dy, x, host}) {
    b.free(id);
  }
  const Program step = b.end_section();
  Plan& plan = tables.plan();
  plan.buffers.push_back(b.take_buffers());

  const ProgramSummary first = summarize(plan, 0, init, {});
  CHECK(first.operations == 2);
  CHECK(total(first.at_end) == 400);
  CHECK(first.peak.work == Work::kInitialize);
  CHECK(bytes_of(first.peak.bytes, Category::kParameter) == 400);

  const ProgramSummary second = summarize(plan, 0, step, first.at_end);
  CHECK(second.operations == 17);
  CHECK(total(second.at_start) == 400);
  CHECK(bytes_of(second.at_end, Category::kParameter) == 400);
  CHECK(bytes_of(second.at_end, Category::kGradient) == 400);
  CHECK(total(second.at_end) == 800);
  // Highest with x, dy, dx and the gradient: y is gone, and the host's input does not count.
  CHECK(total(second.peak.bytes) == 400 + 400 + 80 + 160 + 80);
  CHECK(bytes_of(second.peak.bytes, Category::kActivation) == 80);
  CHECK(bytes_of(second.peak.bytes, Category::kTemporary) == 160 + 80);
  CHECK(bytes_of(second.peak.bytes, Category::kInput) == 0);
  CHECK(second.peak.phase == Phase::kBackward);
  CHECK(second.peak.work == Work::kMatmulGradInput);
  CHECK(second.peak.module == 6);
  CHECK(second.peak.microbatch == 0);

  // Equal operations are one entry, accumulation or not; allocs and frees are none.
  REQUIRE(second.counts.size() == 5);
  std::int64_t sum = 0;
  for (const OperationCount& entry : second.counts) {
    sum += entry.count;
    CHECK(entry.count == (entry.work == Work::kMatmulGradWeight ? 2 : 1));
    CHECK(plan.shapes[entry.shape].extent[0] == (entry.work == Work::kZero   ? 40
                                                 : entry.work == Work::kCast ? 80
                                                                             : 4));
  }
  CHECK(sum == 6);
}

TEST_CASE("A program without allocations peaks where it starts") {
  PlanBuilder tables(Mesh{}, nullptr);
  ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
  b.begin_section();
  const BufferId w =
      b.alloc(Category::kParameter, DType::kFp32, 1, {.lifetime = Lifetime::kPersistent});
  b.end_section();
  b.begin_section();
  b.at(Phase::kEvaluate, 3, 1);
  b.compute(Work::kScale, Shape{{1}}, {b.whole(w)}, {b.whole(w)});
  const Program program = b.end_section();
  tables.plan().buffers.push_back(b.take_buffers());
  CategoryBytes start{};
  start[0] = 4;
  const ProgramSummary summary = summarize(tables.plan(), 0, program, start);
  CHECK(summary.peak.bytes == start);
  CHECK(summary.peak.work == Work::kScale);
  CHECK(summary.peak.module == 3);
}

TEST_CASE("The first of equal peaks is the peak, and one after the last operation has no name") {
  PlanBuilder tables(Mesh{}, nullptr);
  ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
  b.begin_section();
  for (std::int32_t microbatch = 0; microbatch < 3; ++microbatch) {
    b.at(Phase::kForward, 1, microbatch);
    const BufferId x = b.alloc(Category::kActivation, DType::kFp32, 8);
    b.compute(Work::kZero, Shape{{8}}, {}, {b.whole(x)});
    b.free(x);
  }
  const Program equal = b.end_section();
  b.begin_section();
  b.at(Phase::kForward, 1, 0);
  const BufferId y = b.alloc(Category::kActivation, DType::kFp32, 4);
  b.compute(Work::kZero, Shape{{4}}, {}, {b.whole(y)});
  const BufferId z = b.alloc(Category::kActivation, DType::kFp32, 8);
  b.free(z);
  b.free(y);
  const Program nameless = b.end_section();
  tables.plan().buffers.push_back(b.take_buffers());
  CHECK(summarize(tables.plan(), 0, equal, {}).peak.microbatch == 0);
  const MemoryPeak peak = summarize(tables.plan(), 0, nameless, {}).peak;
  CHECK(total(peak.bytes) == 48);
  CHECK(peak.work == Work::kNone);
  CHECK(peak.module == kNoModule);
}

TEST_CASE("Control operations and other groups are counted apart") {
  PlanBuilder tables(Mesh{}, nullptr);
  ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
  b.begin_section();
  const std::uint8_t data = tables.communicator(mask_of(Axis::kData));
  const std::uint8_t tensor = tables.communicator(mask_of(Axis::kTensor));
  const BufferId x = b.alloc(Category::kActivation, DType::kFp32, 8);
  const View all = b.whole(x);
  for (const std::uint16_t flags : {std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{kControl}}) {
    b.collective(Collective::kAllReduce, data, Reduction::kSum, 8, all, all, {.flags = flags});
  }
  b.collective(Collective::kAllReduce, tensor, Reduction::kSum, 8, all, all, {});
  b.collective(Collective::kAllReduce, tensor, Reduction::kSum, 4, all, all, {});
  const Program program = b.end_section();
  tables.plan().buffers.push_back(b.take_buffers());
  const ProgramSummary summary = summarize(tables.plan(), 0, program, {});
  REQUIRE(summary.counts.size() == 4);
  CHECK(summary.counts[0].count == 2);
  CHECK(summary.counts[1].control);
  CHECK(summary.counts[2].communicator == tensor);
  CHECK(summary.counts[3].elements == 4);
}
