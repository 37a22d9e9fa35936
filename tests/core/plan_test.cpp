#include "core/plan.h"

#include <set>
#include <string>

#include "core/error.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

Section section_of(SectionKind kind, int variant, std::size_t operations) {
  Section section;
  section.kind = kind;
  section.variant = variant;
  section.programs.resize(1);
  section.programs[0].operations.resize(operations);
  return section;
}

Mesh mesh_of(int pipeline, int data, int tensor) {
  Mesh mesh;
  mesh.set(Axis::kPipeline, pipeline);
  mesh.set(Axis::kData, data);
  mesh.set(Axis::kTensor, tensor);
  return mesh;
}

/// Names of all enumerators from 0 to `last`.
template <typename Enum>
std::set<std::string> names_up_to(Enum last) {
  std::set<std::string> names;
  for (int value = 0; value <= static_cast<int>(last); ++value) {
    names.insert(std::string(name_of(static_cast<Enum>(value))));
  }
  return names;
}

/// Every enumerator has a name of its own, and the one behind the last has none.
template <typename Enum>
void check_names(Enum last) {
  const std::set<std::string> names = names_up_to(last);
  CHECK(names.size() == static_cast<std::size_t>(last) + 1);
  CHECK(names.count("?") == 0);
  CHECK(names.count("") == 0);
  CHECK(name_of(static_cast<Enum>(static_cast<int>(last) + 1)) == "?");
}

}  // namespace

TEST_CASE("An iteration runs its variant, and the last variant for ever after") {
  // DDP: iteration 0 has one bucket, iteration 1 rebuilds, iteration 2 and later are steady.
  Plan plan;
  plan.sections = {section_of(SectionKind::kInit, 0, 3),
                   section_of(SectionKind::kStep, 0, 10),
                   section_of(SectionKind::kStep, 1, 20),
                   section_of(SectionKind::kStep, 2, 30),
                   section_of(SectionKind::kEvaluate, 0, 5)};
  plan.variant_of_iteration = {0, 1, 2};
  CHECK(plan.step(0).programs[0].operations.size() == 10);
  CHECK(plan.step(1).programs[0].operations.size() == 20);
  CHECK(plan.step(2).programs[0].operations.size() == 30);
  CHECK(plan.step(1'000'000).programs[0].operations.size() == 30);
  CHECK(plan.operation_count() == 68);
  CHECK(plan.find(SectionKind::kEvaluate)->programs[0].operations.size() == 5);
  CHECK(plan.find(SectionKind::kStep, 2)->variant == 2);
  CHECK(plan.find(SectionKind::kSave) == nullptr);
  CHECK(plan.find(SectionKind::kStep, 3) == nullptr);
}

TEST_CASE("A plan without the step that it names says so") {
  Plan plan;
  CHECK_THROWS_AS(plan.step(0), InternalError);
  plan.variant_of_iteration = {1};
  plan.sections = {section_of(SectionKind::kStep, 0, 1)};
  CHECK_THROWS_AS(plan.step(0), InternalError);
  CHECK_THROWS_AS(plan.step(-1), InternalError);
}

TEST_CASE("Ranks that agree on the class axes share a class") {
  Plan plan;
  plan.mesh = mesh_of(2, 3, 2);  // rank = 6 pp + 2 dp + tp
  CHECK(plan.class_count() == 1);
  CHECK(plan.class_of_rank(11) == 0);
  plan.class_axes = mask_of(Axis::kPipeline);
  CHECK(plan.class_count() == 2);
  CHECK(plan.class_of_rank(5) == 0);
  CHECK(plan.class_of_rank(6) == 1);
  plan.class_axes = mask_of(Axis::kPipeline) | mask_of(Axis::kTensor);
  CHECK(plan.class_count() == 4);
  const int expected[] = {0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3};
  for (int rank = 0; rank < 12; ++rank) {
    CHECK(plan.class_of_rank(rank) == expected[rank]);
  }
}

TEST_CASE("A communicator's members are a group of the mesh, or its chosen pipeline stages") {
  Plan plan;
  plan.mesh = mesh_of(4, 2, 1);  // rank = 2 pp + dp
  using Ranks = std::vector<int>;
  CHECK(members(plan, {mask_of(Axis::kData), 0, false}, 5) == Ranks{4, 5});
  CHECK(members(plan, {mask_of(Axis::kPipeline), 0, false}, 5) == Ranks{1, 3, 5, 7});
  // A tied embedding: first and last stage.
  CHECK(members(plan, {mask_of(Axis::kPipeline), 0b1001, false}, 5) == Ranks{1, 7});
  CHECK(members(plan, {0, 0, true}, 5) == Ranks{5});
}

TEST_CASE("An operation's views and dependencies are slices of the program's arrays") {
  Program program;
  program.views.resize(5);
  for (std::uint32_t v = 0; v < 5; ++v) {
    program.views[v].buffer = v;
  }
  program.dependencies = {7, 8, 9};
  Operation op;
  op.first_view = 1;
  op.inputs = 1;
  op.outputs = 2;
  op.first_dependency = 1;
  op.dependencies = 2;
  REQUIRE(program.inputs_of(op).size() == 1);
  CHECK(program.inputs_of(op)[0].buffer == 1);
  REQUIRE(program.outputs_of(op).size() == 2);
  CHECK(program.outputs_of(op)[0].buffer == 2);
  CHECK(program.outputs_of(op)[1].buffer == 3);
  CHECK(program.dependencies_of(op)[0] == 8);
  CHECK(program.dependencies_of(op).size() == 2);
}

TEST_CASE("A buffer has the bytes of its elements, and none when its memory is lent") {
  Buffer buffer;
  buffer.dtype = DType::kBf16;
  buffer.elements = 10;
  CHECK(buffer.bytes() == 20);
  buffer.alias_of = 3;
  CHECK(buffer.bytes() == 0);
}

TEST_CASE("Constant scalars are exact fractions") {
  CHECK(Scalar{Scalar::Source::kConstant, Scalar::Meaning::kFactor, 1, 3}.value() == 1.0 / 3.0);
  CHECK(Scalar{}.value() == 1.0);
}

TEST_CASE("Everything in a plan has a name of its own") {
  check_names(OperationKind::kHost);
  check_names(Collective::kBarrier);
  check_names(Phase::kSave);
  check_names(Work::kCommit);
  check_names(Stream::kHost);
  check_names(Reduction::kAverage);
  check_names(Category::kTemporary);
  check_names(SectionKind::kSave);
  CHECK(name_of(Work::kMatmulGradWeight) == "matmul_grad_weight");
  CHECK(name_of(Work::kAdamW8bit) == "adamw_8bit");
}

TEST_CASE("Work is a closed list of at most 80 steps, none named after a strategy") {
  const std::set<std::string> names = names_up_to(Work::kCommit);
  CHECK(names.size() <= 80);
  for (const std::string& name : names) {
    for (const char* strategy : {"ddp",
                                 "fsdp",
                                 "zero_",
                                 "zero1",
                                 "tensor_parallel",
                                 "pipeline",
                                 "shard_grad",
                                 "megatron"}) {
      INFO(name);
      CHECK(name.find(strategy) == std::string::npos);
    }
  }
}
