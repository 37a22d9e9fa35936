// The value check on plans written by hand: right ones agree, and each mistake is found and named.
#include "core/check/value_check.h"

#include <functional>
#include <string>

#include "tests/core/check/hand_plans.h"
#include "tests/support/catch.h"
#include "tests/support/mutants.h"

namespace lockstep {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::hand_plan;
using test::HandOptions;

constexpr int kInit = 0;
constexpr int kStep = 1;

Program& program_of(Plan& plan, int section) {
  return plan.sections[static_cast<std::size_t>(section)].programs[0];
}

using Match = std::function<bool(const Operation&)>;

std::uint32_t find(const Plan& plan, int section, const Match& matches, int nth = 0) {
  const Program& program = plan.sections[static_cast<std::size_t>(section)].programs[0];
  for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
    if (matches(program.operations[i]) && nth-- == 0) {
      return i;
    }
  }
  FAIL("no such operation");
  return 0;
}

Match is(Collective collective) {
  return [=](const Operation& op) {
    return op.kind == OperationKind::kCollective && op.collective == collective;
  };
}

Match is(Work work) {
  return [=](const Operation& op) { return op.kind == OperationKind::kCompute && op.work == work; };
}

/// The report on `mutant`, which was `original` before it was broken.
ValueReport report_on(const Plan& mutant, const Plan& original) {
  const Plan reference_plan = hand_plan();
  const ValueFacts facts = value_facts(original);
  ValueReference reference(reference_plan, facts.setting);
  return value_check(mutant, reference, facts);
}

std::string text_without(const Plan& plan, int section, const Match& matches) {
  return report_on(test::remove_operation(plan, 0, section, find(plan, section, matches)), plan)
      .text();
}

std::string text_with_twice(const Plan& plan, int section, const Match& matches) {
  return report_on(test::duplicate_operation(plan, 0, section, find(plan, section, matches)), plan)
      .text();
}

/// Every communication, add and scale, left out and issued twice: how many go unnoticed.
int unnoticed(const Plan& plan) {
  const ValueReport original = report_on(plan, plan);
  REQUIRE(original.text() == "values agree");
  int count = 0;
  for (const int section : {kInit, kStep}) {
    const auto& operations =
        plan.sections[static_cast<std::size_t>(section)].programs[0].operations;
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      if (!test::is_bookkeeping(operations[i])) {
        continue;
      }
      for (const Plan& mutant : {test::remove_operation(plan, 0, section, i),
                                 test::duplicate_operation(plan, 0, section, i)}) {
        const ValueReport report = report_on(mutant, plan);
        count += report.ok() && report.idle.size() == original.idle.size() ? 1 : 0;
      }
    }
  }
  return count;
}

// ---- right plans -------------------------------------------------------------------------------

TEST_CASE("a plan on one rank agrees with itself and with itself in two micro-batches") {
  CHECK(value_check(hand_plan(), hand_plan()).text() == "values agree");
  CHECK(value_check(hand_plan({.microbatches = 2}), hand_plan()).text() == "values agree");
}

TEST_CASE("data parallel, sharded and tensor-parallel plans agree with one rank") {
  for (const HandOptions& options : {HandOptions{.data = 2},
                                     HandOptions{.data = 3, .microbatches = 2},
                                     HandOptions{.data = 2, .sharded = true},
                                     HandOptions{.data = 4, .microbatches = 2, .sharded = true},
                                     HandOptions{.tensor = 2},
                                     HandOptions{.data = 2, .tensor = 3, .microbatches = 2}}) {
    INFO("dp " << options.data << ", tp " << options.tensor << ", micro-batches "
               << options.microbatches << ", sharded " << options.sharded);
    const ValueReport report = value_check(hand_plan(options), hand_plan());
    CHECK(report.text() == "values agree");
    CHECK(report.idle.empty());
    // Two iterations, at least one stretch per parameter and rank that has some of it.
    CHECK(report.gradients >= 2 * 4);
  }
}

TEST_CASE("the report does not depend on anything but the plan") {
  const Plan plan = hand_plan({.data = 2});
  const Match all_reduce = is(Collective::kAllReduce);
  CHECK(text_without(plan, kStep, all_reduce) == text_without(plan, kStep, all_reduce));
}

// ---- mutants -----------------------------------------------------------------------------------

TEST_CASE("no communication, add or scale of a hand-written plan can be left out or doubled") {
  CHECK(unnoticed(hand_plan({.data = 2, .microbatches = 2})) == 0);
  CHECK(unnoticed(hand_plan({.data = 3, .microbatches = 2, .sharded = true})) == 0);
  CHECK(unnoticed(hand_plan({.data = 2, .tensor = 2})) == 0);
}

TEST_CASE("without the gradient all-reduce each rank is named with the contributions it has") {
  const std::string text = text_without(hand_plan({.data = 2}), kStep, is(Collective::kAllReduce));
  CHECK_THAT(text, ContainsSubstring("rank 0, iteration 0"));
  CHECK_THAT(text, ContainsSubstring("gradient of up.weight elements 0 to 30"));
  CHECK_THAT(text, ContainsSubstring("holds contributions of dp 0 only"));
  CHECK_THAT(text, ContainsSubstring("holds contributions of dp 1 only"));
}

TEST_CASE("a gradient that is reduced twice or not divided is a multiple of the right one") {
  const Plan plan = hand_plan({.data = 2});
  CHECK_THAT(text_with_twice(plan, kStep, is(Collective::kAllReduce)),
             ContainsSubstring("is 2 times the expected one"));
  Plan undivided = plan;
  program_of(undivided, kStep).operations[find(plan, kStep, is(Work::kPack))].scalar = kNoScalar;
  CHECK_THAT(report_on(undivided, plan).text(), ContainsSubstring("is 2 times the expected one"));
  Plan averaged = plan;
  program_of(averaged, kStep).operations[find(plan, kStep, is(Collective::kAllReduce))].reduction =
      Reduction::kAverage;
  CHECK_THAT(report_on(averaged, plan).text(), ContainsSubstring("is 1/2 of the expected one"));
}

TEST_CASE("a micro-batch whose gradients overwrite those of the one before is named") {
  const Plan plan = hand_plan({.microbatches = 2});
  Plan mutant = plan;
  const Match second = [](const Operation& op) {
    return op.work == Work::kMatmulGradWeight && op.microbatch == 1;
  };
  program_of(mutant, kStep).operations[find(plan, kStep, second)].flags = 0;
  CHECK_THAT(report_on(mutant, plan).text(),
             ContainsSubstring("gradient of down.weight elements 0 to 18: lacks the contribution "
                               "of micro-batch 0"));
  const Plan twice = test::duplicate_operation(plan, 0, kStep, find(plan, kStep, second));
  CHECK_THAT(report_on(twice, plan).text(),
             ContainsSubstring("holds the contribution of micro-batch 1 twice"));
}

TEST_CASE("a product that is not summed over tp is found where its numbers are first used") {
  const Plan plan = hand_plan({.tensor = 2});
  const ValueReport report = report_on(
      test::remove_operation(plan, 0, kStep, find(plan, kStep, is(Collective::kAllReduce))), plan);
  CHECK_FALSE(report.ok());
  // The bias is added to a part of the sum.
  CHECK_THAT(report.first_difference, ContainsSubstring("bias 4x3, down"));
}

TEST_CASE("replicas that start different are found although they compute the same way") {
  const Plan plan = hand_plan({.data = 2});
  CHECK_THAT(
      text_without(plan, kInit, is(Collective::kBroadcast)),
      ContainsSubstring("rank 1, init: parameter buffer 1 holds no version of any parameter, "
                        "not first values of up.weight"));
}

TEST_CASE("a broadcast of what everybody has is not wrong but listed as idle") {
  const Plan plan = hand_plan({.data = 2});
  const std::uint32_t broadcast = find(plan, kInit, is(Collective::kBroadcast));
  const ValueReport report = report_on(test::duplicate_operation(plan, 0, kInit, broadcast), plan);
  CHECK(report.ok());
  REQUIRE(report.idle.size() == 1);
  CHECK(report.idle[0] == IdleOperation{kInit, 0, broadcast + 1});
}

TEST_CASE("parameters that are not gathered again are stale, those not gathered are not there") {
  const Plan plan = hand_plan({.data = 2, .sharded = true});
  CHECK_THAT(text_without(plan, kStep, is(Collective::kAllGather)),
             ContainsSubstring("reads uninitialised memory"));
  CHECK_THAT(text_without(plan, kStep, is(Collective::kReduceScatter)),
             ContainsSubstring("elements of the gradient are uninitialised"));
}

TEST_CASE("a rank that steps with another rank's shard of the gradient is found") {
  const Plan plan = hand_plan({.data = 2, .sharded = true});
  Plan mutant = plan;
  Program& program = program_of(mutant, kStep);
  const Operation& pack = program.operations[find(plan, kStep, is(Work::kPack), 1)];
  // Gradients go to the message as if the two weights were one place further on.
  std::swap(program.views[pack.first_view], program.views[pack.first_view + 2]);
  CHECK_FALSE(report_on(mutant, plan).ok());
}

TEST_CASE("an optimizer step that is left out leaves an old version behind") {
  const Plan plan = hand_plan();
  CHECK_THAT(text_without(plan, kStep, is(Work::kMomentum)),
             ContainsSubstring("after rank 0, step, iteration 0: buffer 1 should hold version 1 of "
                               "up.weight, holds version 0 of up.weight"));
  CHECK_THAT(text_with_twice(plan, kStep, is(Work::kMomentum)),
             ContainsSubstring("updates version 1 of up.weight, expected version 0"));
}

TEST_CASE("a loss that is not averaged, or not read, is found") {
  const Plan plan = hand_plan({.data = 2});
  const Match read = [](const Operation& op) { return op.work == Work::kReadScalar; };
  CHECK_THAT(text_without(plan, kStep, read), ContainsSubstring("no host has read the loss"));
  Plan mutant = plan;
  const Match average = [](const Operation& op) { return op.reduction == Reduction::kAverage; };
  program_of(mutant, kStep).operations[find(plan, kStep, average)].reduction = Reduction::kSum;
  CHECK_THAT(report_on(mutant, plan).text(),
             ContainsSubstring("the host reads 2 times the mean loss"));
}

}  // namespace
}  // namespace lockstep
