// Plan = run: what communicators were asked for and what the device lent, recorded where no plan is
// known, is exactly what the plan says, in its order; and the most that the device had lent is the
// peak that the memory report states. Seeded faults are reported, so the comparison sees something.
#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "core/error.h"
#include "core/memory_report.h"
#include "core/names.h"
#include "core/plan_text.h"
#include "core/planner/planner.h"
#include "tests/support/awkward.h"
#include "tests/support/catch.h"
#include "tests/support/mutants.h"
#include "tests/support/real_run.h"
#include "tests/support/run_record.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSteps = 4;

struct Comparison {
  std::vector<std::string> faults;
  std::string error;  ///< that ended the run, or ""
};

/// What the run of `executed` did that `plan` does not say, or says and was not done.
Comparison compared(const Scenario& scenario,
                    const Plan& plan,
                    const Plan& executed,
                    test::RunOptions options = {}) {
  Comparison result;
  options.after_section = [&](exec::Job& job, const Section& section) {
    const auto index = static_cast<std::size_t>(&section - executed.sections.data());
    for (int rank = 0; rank < job.ranks(); ++rank) {
      for (const std::string& line :
           test::differences(test::planned_record(plan, rank, plan.sections[index]),
                             test::take_record(job, rank))) {
        result.faults.push_back("rank " + std::to_string(rank) + ", section " +
                                std::to_string(index) + ": " + line);
      }
    }
  };
  try {
    test::run_plan(scenario, executed, kSteps, options);
  } catch (const Error& error) {
    result.error = error.what();
  }
  return result;
}

/// As it can be run.
bool runnable(Scenario& scenario) {
  scenario.training.precision = Precision::kFp32;
  scenario.training.gradient_dtype.reset();
  scenario.training.reduce_dtype.reset();
  scenario.training.loss_scaling.reset();
  return !scenario.model.is_moe();
}

void check_peaks(const Scenario& scenario) {
  const MemoryReport report = memory_report(scenario);
  CHECK_FALSE(report.counted);
  std::vector<std::int64_t> most;
  test::RunOptions options;
  const Plan plan = make_plan(scenario, {.evaluate = false, .save = true});
  options.after_section = [&](exec::Job& job, const Section& section) {
    most.resize(static_cast<std::size_t>(job.ranks()));
    for (std::size_t rank = 0; section.kind != SectionKind::kSave && rank < most.size(); ++rank) {
      most[rank] = job.device(static_cast<int>(rank)).memory().peak(Storage::kDevice);
    }
  };
  test::run_plan(scenario, plan, kSteps, options);
  for (const RankMemory& of_class : report.ranks) {
    for (const int rank : report.ranks_of(of_class)) {
      INFO("rank " << rank);
      CHECK(most[static_cast<std::size_t>(rank)] == of_class.tensor_bytes());
    }
  }
}

// ---- faults ------------------------------------------------------------------------------------

using Random = std::mt19937_64;

/// Section and class of a random steady step, and one of its operations that `fits`.
struct Target {
  int section = 0;
  int class_index = 0;
  std::uint32_t operation = 0;
};

template <typename Fits>
Target pick(const Plan& plan, Random& random, Fits&& fits) {
  Target target;
  target.section =
      static_cast<int>(&plan.step(static_cast<int>(kSteps) - 1) - plan.sections.data());
  const auto& programs = plan.sections[static_cast<std::size_t>(target.section)].programs;
  target.class_index = static_cast<int>(random() % programs.size());
  const Program& program = programs[static_cast<std::size_t>(target.class_index)];
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
    if (fits(program, i)) {
      all.push_back(i);
    }
  }
  REQUIRE(!all.empty());
  target.operation = all[random() % all.size()];
  return target;
}

Operation& operation_at(Plan& plan, const Target& target) {
  return plan.sections[static_cast<std::size_t>(target.section)]
      .programs[static_cast<std::size_t>(target.class_index)]
      .operations[target.operation];
}

bool communicates(const Program& program, std::uint32_t i) {
  return program.operations[i].communicator != kNoCommunicator;
}

bool sends_several(const Program& program, std::uint32_t i) {
  return communicates(program, i) && program.operations[i].elements > 1;
}

bool frees(const Program& program, std::uint32_t i) {
  return program.operations[i].kind == OperationKind::kFree;
}

Plan dropped(const Plan& plan, Random& random) {
  const Target it = pick(plan, random, communicates);
  return test::remove_operation(plan, it.class_index, it.section, it.operation);
}

Plan miscounted(const Plan& plan, Random& random) {
  const Target it = pick(plan, random, sends_several);
  Plan mutant = plan;
  --operation_at(mutant, it).elements;
  return mutant;
}

/// A buffer that nobody asked for, given back at the section's end or not at all.
Plan allocated_more(const Plan& plan, Random& random) {
  const Target it = pick(plan, random, [](const Program&, std::uint32_t) { return true; });
  Plan mutant = plan;
  auto& buffers = mutant.buffers[static_cast<std::size_t>(it.class_index)];
  Operation alloc;
  alloc.kind = OperationKind::kAlloc;
  alloc.buffer = static_cast<std::uint32_t>(buffers.size());
  buffers.emplace_back().elements = 1;
  mutant = test::insert_operation(mutant, it.class_index, it.section, it.operation, alloc);
  Operation free = alloc;
  free.kind = OperationKind::kFree;
  return test::insert_operation(mutant, it.class_index, it.section, it.operation + 1, free);
}

/// One free after the next allocation or free.
Plan freed_late(const Plan& plan, Random& random) {
  const auto next = [](const Program& program, std::uint32_t i) {
    std::uint32_t j = i + 1;
    while (j < program.operations.size() && program.operations[j].kind != OperationKind::kAlloc) {
      ++j;
    }
    return j;
  };
  const Target it = pick(plan, random, [&](const Program& program, std::uint32_t i) {
    return frees(program, i) && next(program, i) < program.operations.size();
  });
  const Program& program = plan.sections[static_cast<std::size_t>(it.section)]
                               .programs[static_cast<std::size_t>(it.class_index)];
  std::vector<std::uint32_t> order(program.operations.size());
  std::iota(order.begin(), order.end(), 0U);
  std::rotate(order.begin() + it.operation,
              order.begin() + it.operation + 1,
              order.begin() + next(program, it.operation) + 1);
  return test::reorder_operations(plan, it.class_index, it.section, order);
}

/// Two transfers of one communicator that are not alike, in each other's place.
Plan swapped(const Plan& plan, Random& random) {
  const auto next = [](const Program& program, std::uint32_t i) {
    const Operation& op = program.operations[i];
    std::uint32_t j = i + 1;
    while (j < program.operations.size() &&
           (program.operations[j].communicator != op.communicator ||
            program.operations[j].elements == op.elements)) {
      ++j;
    }
    return j;
  };
  const Target it = pick(plan, random, [&](const Program& program, std::uint32_t i) {
    return communicates(program, i) && next(program, i) < program.operations.size();
  });
  const Program& program = plan.sections[static_cast<std::size_t>(it.section)]
                               .programs[static_cast<std::size_t>(it.class_index)];
  std::vector<std::uint32_t> order(program.operations.size());
  std::iota(order.begin(), order.end(), 0U);
  std::swap(order[it.operation], order[next(program, it.operation)]);
  return test::reorder_operations(plan, it.class_index, it.section, order);
}

/// Half as wide.
Plan mistyped(const Plan& plan, Random& random) {
  const Target it = pick(plan, random, [](const Program& program, std::uint32_t i) {
    return communicates(program, i) && program.operations[i].dtype == DType::kFp32;
  });
  Plan mutant = plan;
  operation_at(mutant, it).dtype = DType::kBf16;
  return mutant;
}

}  // namespace

TEST_CASE("what was issued and lent is what the plan says, for every strategy", "[plan-is-run]") {
  for (test::NamedScenario& each : test::one_of_each()) {
    if (runnable(each.scenario)) {
      INFO(each.name);
      const Plan plan = make_plan(each.scenario);
      test::RunOptions options;
      options.evaluate = true;
      const Comparison comparison = compared(each.scenario, plan, plan, options);
      CHECK(fmt::format("{}", fmt::join(comparison.faults, "\n")).empty());
      CHECK(comparison.error.empty());
    }
  }
}

TEST_CASE("the most that a device lends is the peak of the memory report", "[plan-is-run]") {
  for (test::NamedScenario& each : test::one_of_each()) {
    if (runnable(each.scenario)) {
      INFO(each.name);
      check_peaks(each.scenario);
    }
  }
}

TEST_CASE("thirty seeded faults in what is run are all reported", "[plan-is-run]") {
  Random random(test::test_seed());
  std::vector<Scenario> scenarios;
  for (const std::size_t training : {0U, 1U}) {
    const test::NamedScenario base = test::awkward_trainings()[training];
    for (const test::AwkwardScenario& each : test::awkward_strategies(base)) {
      scenarios.push_back(each.scenario);
    }
  }
  int ran_to_the_end = 0;
  using Fault = Plan (*)(const Plan&, Random&);
  for (const Fault fault : {dropped, miscounted, allocated_more, freed_late, swapped, mistyped}) {
    for (int i = 0; i < test::scaled(5); ++i) {
      Scenario scenario = scenarios[random() % scenarios.size()];
      scenario.training.precision = Precision::kFp32;
      INFO(scenario.name << ", seed " << test::test_seed());
      const Plan plan = make_plan(scenario);
      test::RunOptions options;
      options.timeout = std::chrono::milliseconds(500);
      const Comparison comparison = compared(scenario, plan, fault(plan, random), options);
      CHECK_FALSE(comparison.faults.empty());
      ran_to_the_end += comparison.error.empty() ? 1 : 0;
    }
  }
  // Not only by ending the run, which backends notice by themselves.
  CHECK(ran_to_the_end >= test::scaled(10));
}

TEST_CASE("a missing exchange of counts, on which no number depends, is reported",
          "[plan-is-run]") {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.data.degree = 2;
  scenario.strategy.data.find_unused_parameters = true;
  scenario = resolved(scenario);
  const Plan plan = make_plan(scenario);
  int tried = 0;
  for (std::size_t s = 0; s < plan.sections.size(); ++s) {
    const std::vector<Operation>& operations = plan.sections[s].programs.front().operations;
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      const DType dtype = operations[i].dtype;
      const bool counts = operations[i].kind == OperationKind::kCollective &&
                          (dtype == DType::kInt32 || dtype == DType::kInt64);
      if (counts && plan.sections[s].kind != SectionKind::kEvaluate) {
        INFO(describe(plan, 0, static_cast<int>(s), i));
        const Plan mutant = test::remove_operation(plan, 0, static_cast<int>(s), i);
        CHECK_FALSE(compared(scenario, plan, mutant).faults.empty());
        ++tried;
      }
    }
  }
  CHECK(tried >= 5);
}

}  // namespace lockstep
