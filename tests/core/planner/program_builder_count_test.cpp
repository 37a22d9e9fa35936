// Counting is emitting without the operations: for any program that keeps to the conditions of
// repeat, repeat_reverse and once_per, both give the same summary, to the byte and to the name of
// the peak. Programs are random trees: loops in loops, fragments in loops, loops in fragments,
// buffers that outlive their run, and first and last runs that do more than the others.
#include <algorithm>
#include <tuple>

#include "core/planner/program_builder.h"
#include "tests/core/planner/program_tree.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// ---- comparing ---------------------------------------------------------------------------------

auto fields(const OperationCount& entry) {
  return std::make_tuple(entry.kind,
                         entry.work,
                         entry.collective,
                         entry.phase,
                         entry.stream,
                         entry.communicator,
                         entry.dtype,
                         entry.control,
                         entry.shape,
                         entry.elements,
                         entry.count);
}

auto sorted(std::vector<OperationCount> counts) {
  std::erase_if(counts, [](const OperationCount& entry) { return entry.count == 0; });
  std::sort(counts.begin(), counts.end(), [](const OperationCount& a, const OperationCount& b) {
    return fields(a) < fields(b);
  });
  std::vector<decltype(fields(counts.front()))> result;
  for (const OperationCount& entry : counts) {
    result.push_back(fields(entry));
  }
  return result;
}

void check_equal(const ProgramSummary& counted, const ProgramSummary& walked) {
  REQUIRE(counted.operations == walked.operations);
  REQUIRE(counted.at_start == walked.at_start);
  REQUIRE(counted.at_end == walked.at_end);
  REQUIRE(counted.peak.bytes == walked.peak.bytes);
  REQUIRE(counted.peak.phase == walked.peak.phase);
  REQUIRE(counted.peak.work == walked.peak.work);
  REQUIRE(counted.peak.module == walked.peak.module);
  REQUIRE(counted.peak.microbatch == walked.peak.microbatch);
  REQUIRE(sorted(counted.counts) == sorted(walked.counts));
}

/// Runs the tree in two sections of one class, emitted and counted, and compares both sections.
void compare(const Tree& tree) {
  PlanBuilder tables(Mesh{}, nullptr);
  ProgramBuilder emitting(tables, ProgramBuilder::Mode::kEmit);
  ProgramBuilder counting(tables, ProgramBuilder::Mode::kCount);
  TreeInterpreter emitted(emitting, tree);
  TreeInterpreter counted(counting, tree);
  Program programs[2];
  ProgramSummary summaries[2];
  for (int section = 0; section < 2; ++section) {
    emitting.begin_section();
    counting.begin_section();
    emitted.run();
    counted.run();
    programs[section] = emitting.end_section();
    REQUIRE(counting.end_section().operations.empty());
    summaries[section] = counting.summary();
  }
  Plan& plan = tables.plan();
  plan.buffers.push_back(emitting.take_buffers());
  CategoryBytes start{};
  for (int section = 0; section < 2; ++section) {
    const ProgramSummary walked = summarize(plan, 0, programs[section], start);
    check_equal(summaries[section], walked);
    start = walked.at_end;
  }
}

Node operation_node(int number) {
  Node node;
  node.number = number;
  return node;
}

Node keep_node(Node::Kind kind, std::int64_t elements) {
  Node node;
  node.kind = kind;
  node.number = 2;  // fp32, device, gradient
  node.elements = elements;
  return node;
}

Node repeat_node(std::int64_t count, bool reverse, std::vector<Node> children) {
  Node node;
  node.kind = Node::kRepeat;
  node.count = count;
  node.reverse = reverse;
  node.step = {10, 1};
  node.children = std::move(children);
  return node;
}

ProgramSummary counted_summary(const Tree& tree) {
  PlanBuilder tables(Mesh{}, nullptr);
  ProgramBuilder counting(tables, ProgramBuilder::Mode::kCount);
  TreeInterpreter interpreter(counting, tree);
  counting.begin_section();
  interpreter.run();
  counting.end_section();
  return counting.summary();
}

}  // namespace

TEST_CASE("A loop that keeps a buffer per run peaks in its last run, by hand") {
  // 5 runs keep 10 fp32 each, then 5 give them back; scratch is 64 fp32. The sixth operation after
  // the fifth keep is the first of the second loop, which runs from index 4 down.
  const Node work = operation_node(3);
  Tree tree;
  tree.root = {repeat_node(5, false, {work, keep_node(Node::kKeep, 10)}),
               repeat_node(5, true, {work, keep_node(Node::kRelease, 10)})};
  const ProgramSummary summary = counted_summary(tree);
  CHECK(summary.operations == 1 + 5 * 2 + 5 * 2);
  CHECK(summary.peak.bytes[static_cast<std::size_t>(Category::kGradient)] == 5 * 40);
  CHECK(summary.peak.module == 100'000 + 4 * 10);
  CHECK(summary.peak.microbatch == 5'000 + 4);
  CHECK(total(summary.at_end) == 256);
  REQUIRE(summary.counts.size() == 1);
  CHECK(summary.counts[0].count == 10);
  compare(tree);
}

TEST_CASE("A peak inside a middle run is named by the run that is highest, by hand") {
  // Run i holds i kept buffers and a temporary: the highest is the last, index 5, unless the
  // temporary is there in middle runs only: then index 4.
  Node temporary = keep_node(Node::kTemporary, 1000);
  temporary.children = {operation_node(3)};
  temporary.when = When::kMiddle;
  Tree tree;
  tree.root = {
      repeat_node(6, false, {operation_node(3), temporary, keep_node(Node::kKeep, 10)}),
      repeat_node(6, false, {operation_node(3), keep_node(Node::kRelease, 10), temporary})};
  const ProgramSummary summary = counted_summary(tree);
  // First loop: 4 kept + temporary in run 4. Second loop, giving back: run 1 has 4 kept left.
  CHECK(total(summary.peak.bytes) == 256 + 4 * 40 + 4000);
  CHECK(summary.peak.microbatch == 5'000 + 4);
  compare(tree);

  std::swap(tree.root[0].children[1],
            tree.root[0].children[2]);  // the temporary on top of its keep
  CHECK(counted_summary(tree).peak.microbatch == 5'000 + 4);
  CHECK(total(counted_summary(tree).peak.bytes) == 256 + 5 * 40 + 4000);
  compare(tree);
}

TEST_CASE("Loops of no net allocation peak in their first run, whatever their direction") {
  for (const bool reverse : {false, true}) {
    Node temporary = keep_node(Node::kTemporary, 1000);
    temporary.children = {operation_node(3)};
    temporary.when = When::kMiddle;
    Tree tree;
    tree.root = {repeat_node(6, reverse, {operation_node(3), temporary})};
    CHECK(counted_summary(tree).peak.microbatch == 5'000 + (reverse ? 4 : 1));
    compare(tree);
  }
}

TEST_CASE("Fragments count once per run in loops, and are named by the run they stand for") {
  // A forward fragment keeps a buffer per micro-batch, as a pipeline stage does.
  Node forward;
  forward.kind = Node::kOnce;
  forward.number = 0;
  Node backward = forward;
  backward.number = 1;
  Tree tree;
  tree.fragments = {{operation_node(3), keep_node(Node::kKeep, 10)},
                    {operation_node(7), keep_node(Node::kRelease, 10)}};
  tree.root = {repeat_node(6, false, {forward}), repeat_node(6, false, {backward})};
  const ProgramSummary summary = counted_summary(tree);
  CHECK(summary.operations == 1 + 2 * 6 + 2 * 6);
  CHECK(total(summary.peak.bytes) == 256 + 6 * 40);
  compare(tree);
  // One fragment after the other, without a loop.
  tree.root = {forward, forward, backward, forward, forward, backward, backward, backward};
  CHECK(counted_summary(tree).operations == 1 + 8 * 2);
  compare(tree);
}

TEST_CASE("The summary of counting equals that of the emitted program, for random programs") {
  const std::uint64_t seed = test::test_seed();
  for (int round = 0; round < test::scaled(2000); ++round) {
    INFO("seed " << seed << " round " << round);
    compare(TreeGenerator(seed * 1'000'003 + static_cast<std::uint64_t>(round)).tree());
  }
}
