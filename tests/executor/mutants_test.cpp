// Equivalence notices: a plan that lacks any one of its communications, scales or adds no longer
// trains to one rank's parameters and losses, or does not run to its end. Memory is NaN until it is
// written, ranks that are sent their first values begin with others, and clipping clips, so that
// no operation is there for nothing.
#include "tests/support/mutants.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/check/value_check.h"
#include "core/error.h"
#include "core/names.h"
#include "core/plan_text.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/hand_written.h"
#include "tests/support/idle.h"
#include "tests/support/one_rank.h"
#include "tests/support/real_run.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSteps = 3;  // every form of the step: the first ones of DDP differ

/// One block a stage, SGD (whose step is proportional to its gradient), a norm above the limit.
Scenario small(std::int64_t layers = 1) {
  Scenario scenario = test::tiny_gpt();
  scenario.model.layers = layers;
  scenario.model.max_position = 4;
  scenario.training.micro_batch = 1;
  scenario.training.accumulate = 2;
  scenario.training.precision = Precision::kFp64;
  scenario.training.optimizer = OptimizerKind::kSgd;
  scenario.training.clip_norm = 0.05;
  return scenario;
}

/// Several buckets also in the small.
Scenario small_with_buckets() {
  Scenario scenario = small();
  scenario.strategy.data.bucket_mib = 0.008;
  return scenario;
}

bool agree(const test::RunResult& one, const test::RunResult& many) {
  if (one.losses.size() != many.losses.size()) {
    return false;
  }
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    if (!(std::abs(one.losses[i] - many.losses[i]) <= 1e-12 * std::abs(one.losses[i]))) {
      return false;
    }
  }
  return test::difference(one, many).relative <= 1e-12;
}

/// Section, class, operation.
using Place = std::tuple<int, int, std::uint32_t>;

/// A correct plan and what its runs are held against.
class Original {
 public:
  Original(const Scenario& scenario, Plan plan) : scenario_(scenario), plan_(std::move(plan)) {
    options_.evaluate = true;
    one_ = test::run_for_real(test::on_one_rank(scenario), kSteps, options_);
    options_.distorted = true;
    if (!runs_to_the_same(plan_)) {  // shards are not sent, everybody makes its own
      options_.distorted = false;
    }
    CHECK(runs_to_the_same(plan_));
    options_.timeout = std::chrono::milliseconds(300);
    const ValueReport report = value_check(plan_, make_plan(test::one_rank(scenario)));
    for (const IdleOperation& idle : report.idle) {
      CHECK(test::may_be_idle(plan_, idle));
      idle_.insert({idle.section, idle.class_index, idle.operation});
    }
  }

  const Plan& plan() const { return plan_; }

  /// `late`: one rank shows its shards after all others.
  bool runs_to_the_same(const Plan& plan, bool late = false) const {
    test::RunOptions options = options_;
    options.late = std::chrono::milliseconds(late ? 50 : 0);
    try {
      return agree(one_, test::run_plan(scenario_, plan, kSteps, options));
    } catch (const Error&) {
      return false;
    }
  }

  bool matters(const Place& place) const;

 private:
  Scenario scenario_;
  Plan plan_;
  test::RunOptions options_;
  test::RunResult one_;
  std::set<Place> idle_;  ///< changes nothing in a correct plan
};

/// What is sent to be compared or counted alone: descriptions of the model, maps of used
/// parameters, orders and sizes of buckets. All processes have the same plan here, so nothing
/// depends on it; that it is missing is seen by comparing what was issued with the plan.
bool carries_counts(const Operation& op) {
  const bool integers = op.dtype == DType::kInt64 || op.dtype == DType::kInt32;
  return op.kind == OperationKind::kCollective && integers && op.collective != Collective::kBarrier;
}

/// The clipping of a gradient whose parameter another rank updates. torch.nn.utils.clip_grad_norm_
/// scales all gradients of a process, and ZeroRedundancyOptimizer steps only those of its own.
bool scales_for_others(const Program& program,
                       const Plan& plan,
                       std::size_t class_index,
                       const Operation& op) {
  if (op.work != Work::kScale || op.phase != Phase::kClip) {
    return false;
  }
  const std::vector<Buffer>& buffers = plan.buffers[class_index];
  const std::int32_t parameter = buffers[program.inputs_of(op)[0].buffer].parameter;
  return parameter >= 0 &&
         std::none_of(program.operations.begin(), program.operations.end(), [&](const auto& each) {
           return each.work == Work::kSgd &&
                  buffers[program.inputs_of(each)[0].buffer].parameter == parameter;
         });
}

bool Original::matters(const Place& place) const {
  const auto [section, class_index, operation] = place;
  const auto c = static_cast<std::size_t>(class_index);
  const Program& program = plan_.sections[static_cast<std::size_t>(section)].programs[c];
  const Operation& op = program.operations[operation];
  return test::is_bookkeeping(op) && !carries_counts(op) && idle_.count(place) == 0 &&
         !scales_for_others(program, plan_, c, op);
}

std::vector<Place> places(const Original& original) {
  std::vector<Place> all;
  const Plan& plan = original.plan();
  for (std::size_t s = 0; s < plan.sections.size(); ++s) {
    for (std::size_t c = 0; c < plan.sections[s].programs.size(); ++c) {
      for (std::size_t i = 0; i < plan.sections[s].programs[c].operations.size(); ++i) {
        const Place place{static_cast<int>(s), static_cast<int>(c), static_cast<std::uint32_t>(i)};
        if (original.matters(place)) {
          all.push_back(place);
        }
      }
    }
  }
  return all;
}

/// Mutants are run several at a time: many wait for something that never comes.
void check_mutants(const Scenario& unresolved, const Plan* given = nullptr) {
  constexpr int kAtOnce = 8;
  const Scenario scenario = resolved(unresolved);
  require_valid(scenario);
  INFO(test::text_of(scenario));
  const Original original(scenario, given != nullptr ? *given : make_plan(scenario));
  const Plan& plan = original.plan();
  const std::vector<Place> all = places(original);
  std::vector<char> caught(all.size(), 0);
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  workers.reserve(kAtOnce);
  for (int worker = 0; worker < kAtOnce; ++worker) {
    workers.emplace_back([&] {
      for (std::size_t i = next++; i < all.size(); i = next++) {
        const auto [section, class_index, operation] = all[i];
        const bool saves =
            plan.sections[static_cast<std::size_t>(section)].kind == SectionKind::kSave;
        const Plan mutant = test::remove_operation(plan, class_index, section, operation);
        caught[i] = original.runs_to_the_same(mutant, saves) ? 0 : 1;
      }
    });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [section, class_index, operation] = all[i];
    INFO("without " << describe(plan, class_index, section, operation));
    CHECK(caught[i] != 0);
  }
  CHECK(all.size() > 20);
}

}  // namespace

TEST_CASE("no DDP plan trains without one of its operations", "[mutants]") {
  Scenario scenario = small_with_buckets();
  scenario.strategy.data.degree = 2;
  check_mutants(scenario);
}

TEST_CASE("no DataParallel plan trains without one of its operations", "[mutants]") {
  Scenario scenario = test::tiny_mlp();
  scenario.training = small().training;
  scenario.strategy.data.kind = DataKind::kDp;
  scenario.strategy.data.degree = 2;
  check_mutants(scenario);
}

TEST_CASE("no ZeRO 1 plan of any flavour trains without one of its operations", "[mutants]") {
  for (const NameRow<ZeroFlavour>& flavour : name_table<ZeroFlavour>()) {
    Scenario scenario = small_with_buckets();
    scenario.strategy.data.kind = DataKind::kZero1;
    scenario.strategy.data.flavour = flavour.value;
    scenario.strategy.data.degree = 2;
    if (validate(resolved(scenario)).empty()) {
      check_mutants(scenario);
    }
  }
}

TEST_CASE("no ZeRO 2 plan of any flavour trains without one of its operations", "[mutants]") {
  for (const NameRow<ZeroFlavour>& flavour : name_table<ZeroFlavour>()) {
    Scenario scenario = small_with_buckets();
    scenario.strategy.data.kind = DataKind::kZero2;
    scenario.strategy.data.flavour = flavour.value;
    scenario.strategy.data.degree = 2;
    if (validate(resolved(scenario)).empty()) {
      check_mutants(scenario);
    }
  }
}

TEST_CASE("no FSDP, HSDP or ZeRO 3 plan trains without one of its operations", "[mutants]") {
  for (const DataKind kind : {DataKind::kFsdp, DataKind::kHsdp, DataKind::kZero3}) {
    Scenario scenario = small();
    scenario.strategy.data.kind = kind;
    scenario.strategy.data.degree = kind == DataKind::kHsdp ? 4 : 2;
    scenario.strategy.data.replicate = kind == DataKind::kHsdp ? 2 : 1;
    check_mutants(scenario);
  }
}

TEST_CASE("no tensor-parallel plan trains without one of its operations", "[mutants]") {
  for (const bool sequence_parallel : {false, true}) {
    Scenario scenario = small();
    scenario.training.accumulate = 1;
    scenario.strategy.tensor.degree = 2;
    scenario.strategy.tensor.sequence_parallel = sequence_parallel;
    check_mutants(scenario);
  }
}

TEST_CASE("no pipeline plan of any schedule trains without one of its operations", "[mutants]") {
  for (const NameRow<ScheduleKind>& schedule : name_table<ScheduleKind>()) {
    const bool one = schedule.value == ScheduleKind::kGPipe ||
                     schedule.value == ScheduleKind::k1F1B || schedule.value == ScheduleKind::kZbH1;
    Scenario scenario = small(one ? 2 : 4);
    scenario.strategy.pipeline.degree = 2;
    scenario.strategy.pipeline.schedule = schedule.value;
    scenario.strategy.pipeline.chunks = one ? 1 : 2;
    check_mutants(scenario);
  }
}

TEST_CASE("the strategy written by hand does not train without one of its operations",
          "[mutants]") {
  Scenario scenario = small();
  scenario.strategy.data.degree = 2;
  scenario = resolved(scenario);
  const Plan plan = test::hand_written_plan(scenario);
  check_mutants(scenario, &plan);
}

}  // namespace lockstep
