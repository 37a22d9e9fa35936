// Every mutant is caught: a plan without any one of its communications, scales or adds, or with one
// of them twice, fails the plan check or the value check. Of each hundred mutants the usual run
// tries ten, chosen by the seed; a long run tries all. What changes nothing in a correct plan
// (tests/support/idle.h) can be removed without loss.
#include "tests/support/mutants.h"

#include <random>
#include <set>
#include <string>
#include <tuple>

#include "core/check/plan_check.h"
#include "core/check/value_check.h"
#include "core/plan_text.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/idle.h"
#include "tests/support/one_rank.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

/// A correct plan and what its mutants are compared with.
class Original {
 public:
  explicit Original(const Scenario& scenario)
      : plan_(make_plan(scenario)),
        one_rank_(make_plan(test::one_rank(scenario))),
        facts_(value_facts(plan_)),
        reference_(one_rank_, facts_.setting) {
    CHECK(check_plan(plan_).text() == "no problems");
    const ValueReport report = value_check(plan_, reference_, facts_);
    CHECK(report.text() == "values agree");
    idle_ = report.idle.size();
    for (const IdleOperation& idle : report.idle) {
      INFO("idle: " << describe(plan_, idle.class_index, idle.section, idle.operation));
      CHECK(test::may_be_idle(plan_, idle));
      idle_operations_.insert({idle.section, idle.class_index, idle.operation});
    }
  }

  const Plan& plan() const { return plan_; }
  bool is_idle(int section, int class_index, std::uint32_t operation) const {
    return idle_operations_.count({section, class_index, operation}) != 0;
  }
  /// Whether a check finds a fault in the mutant, or an operation that has become useless.
  bool notices(const Plan& mutant) {
    PlanCheckOptions first_fault;
    first_fault.max_problems = 1;
    if (!check_plan(mutant, first_fault).empty()) {
      return true;
    }
    ValueCheckOptions options;
    options.max_problems = 1;
    options.explain = false;
    const ValueReport report = value_check(mutant, reference_, facts_, options);
    return !report.ok() || report.idle.size() > idle_;
  }

 private:
  Plan plan_;
  Plan one_rank_;
  ValueFacts facts_;
  ValueReference reference_;
  std::size_t idle_ = 0;
  std::set<std::tuple<int, int, std::uint32_t>> idle_operations_;
};

struct Tally {
  int tried = 0;
  int missed = 0;
};

void try_mutants(Original& original,
                 int section,
                 int class_index,
                 std::uint32_t operation,
                 std::mt19937_64& random,
                 Tally& tally) {
  const Plan& plan = original.plan();
  for (const bool twice : {false, true}) {
    const bool without_loss = !twice && original.is_idle(section, class_index, operation);
    if (static_cast<int>(random() % 100) >= test::scaled(10) || without_loss) {
      continue;
    }
    ++tally.tried;
    const bool caught =
        original.notices(twice ? test::duplicate_operation(plan, class_index, section, operation)
                               : test::remove_operation(plan, class_index, section, operation));
    if (!caught) {
      ++tally.missed;
      UNSCOPED_INFO((twice ? "twice: " : "without: ")
                    << describe(plan, class_index, section, operation));
    }
  }
}

/// The scenarios of one_of_each() whose names begin as given.
void check_all_mutants(const std::set<std::string>& beginnings) {
  std::mt19937_64 random(test::test_seed());
  int plans = 0;
  for (const test::NamedScenario& each : test::one_of_each()) {
    if (beginnings.count(each.name.substr(0, each.name.find_first_of(" ,"))) == 0) {
      continue;
    }
    ++plans;
    INFO(each.name << ", seed " << test::test_seed());
    Original original(each.scenario);
    Tally tally;
    const Plan& plan = original.plan();
    for (std::size_t s = 0; s < plan.sections.size(); ++s) {
      for (std::size_t c = 0; c < plan.sections[s].programs.size(); ++c) {
        const std::vector<Operation>& operations = plan.sections[s].programs[c].operations;
        for (std::uint32_t i = 0; i < operations.size(); ++i) {
          if (test::is_bookkeeping(operations[i])) {
            try_mutants(original, static_cast<int>(s), static_cast<int>(c), i, random, tally);
          }
        }
      }
    }
    CHECK(tally.missed == 0);
    CHECK(tally.tried > 0);
  }
  CHECK(plans > 0);
}

}  // namespace

TEST_CASE("mutants of at least fifty plans are tried") {
  CHECK(test::one_of_each().size() >= 50);
}

TEST_CASE("no mutant of a DDP or DataParallel plan is missed") {
  check_all_mutants({"ddp", "dp"});
}

TEST_CASE("no mutant of a ZeRO 1 or ZeRO 2 plan is missed") {
  check_all_mutants({"zero1", "zero2"});
}

TEST_CASE("no mutant of an FSDP, HSDP or ZeRO 3 plan is missed") {
  check_all_mutants({"fsdp", "hsdp", "zero3"});
}

TEST_CASE("no mutant of a tensor-parallel or expert plan is missed") {
  check_all_mutants({"tp", "experts"});
}

TEST_CASE("no mutant of a pipeline plan is missed") {
  check_all_mutants({"pp"});
}

}  // namespace lockstep
