// How far FSDP's gathers run ahead of the computation: what the dependencies of a plan allow.
#include <set>
#include <vector>

#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

/// A rank's step of FSDP over two ranks with six blocks.
Plan fsdp_plan(bool prefetch) {
  Scenario scenario = test::tiny_gpt();
  scenario.model.layers = 6;
  scenario.strategy.data.kind = DataKind::kFsdp;
  scenario.strategy.data.degree = 2;
  scenario.strategy.data.backward_prefetch = prefetch;
  return make_plan(resolved(scenario), {.evaluate = false, .save = false});
}

bool is_copy_in(const Operation& op) {
  return op.work == Work::kPack && op.stream == Stream::kCopy;
}

bool is_copy_out(const Operation& op) {
  return op.work == Work::kUnpack && op.phase != Phase::kInit;
}

/// For every copy-in: how many gathers were started before it whose copy-out it does not wait for.
std::vector<int> gathers_under_way(const Program& program) {
  std::set<std::uint32_t> waited;  // by the copy stream
  std::vector<std::uint32_t> outs;
  for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
    if (is_copy_out(program.operations[i])) {
      outs.push_back(i);
    }
  }
  std::vector<int> result;
  int started = 0;
  for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
    const Operation& op = program.operations[i];
    if (!is_copy_in(op)) {
      continue;
    }
    for (const std::uint32_t on : program.dependencies_of(op)) {
      // The compute stream is in order: all earlier copy-outs are done as well.
      for (const std::uint32_t out : outs) {
        if (out <= on) {
          waited.insert(out);
        }
      }
    }
    result.push_back(started - static_cast<int>(waited.size()));
    ++started;
  }
  return result;
}

}  // namespace

TEST_CASE("FSDP gathers into two buffers in turn in forward, into one in backward") {
  // fsdp_param_group.py: in forward the copy-in of a unit waits for the copy-out two units before
  // it, so at most one gather is under way when another starts; in backward for the last one.
  const Plan plan = fsdp_plan(true);
  const Program& program = plan.step(0).programs.front();
  std::vector<int> expected{0};           // the root
  expected.insert(expected.end(), 6, 1);  // blocks 0 to 5
  expected.insert(expected.end(), 1, 1);  // backward of 5, beside the last buffer of forward
  expected.insert(expected.end(), 5, 0);  // 4 to 0; the root has stayed
  CHECK(gathers_under_way(program) == expected);
}

TEST_CASE("FSDP without prefetch gathers a unit's parameters when backward comes to it") {
  const Plan plan = fsdp_plan(false);
  const Program& program = plan.step(0).programs.front();
  const std::vector<int> found = gathers_under_way(program);
  REQUIRE(found.size() == 13);
  for (std::size_t i = 8; i < found.size(); ++i) {
    CHECK(found[i] == 0);
  }
}

}  // namespace lockstep
