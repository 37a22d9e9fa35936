#include "core/check/value_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/check.h"
#include "core/check/value_verifier.h"

namespace lockstep {
namespace {

/// Kinds of operation that may be idle without being useless: what they write is not a number of
/// the model, or the memory is uninitialised before.
bool counts_as_idle(const Operation& op) {
  switch (op.kind) {
    case OperationKind::kCollective:
      return op.collective != Collective::kBarrier;
    case OperationKind::kRecv:
    case OperationKind::kCopy:
      return true;
    case OperationKind::kCompute:
      return op.work == Work::kAdd || op.work == Work::kScale || op.work == Work::kCast ||
             op.work == Work::kPack || op.work == Work::kUnpack || op.work == Work::kBias ||
             op.work == Work::kSumSquares || op.has(kAccumulate);
    default:
      return false;
  }
}

void list_idle(const Plan& plan, const ValueMachine& machine, ValueReport& report) {
  for (std::size_t s = 0; s < plan.sections.size(); ++s) {
    for (std::size_t c = 0; c < plan.sections[s].programs.size(); ++c) {
      const std::vector<Operation>& operations = plan.sections[s].programs[c].operations;
      for (std::size_t i = 0; i < operations.size(); ++i) {
        if (machine.use()[s][c][i] == ValueUse::kChangedNothing && counts_as_idle(operations[i])) {
          report.idle.push_back(
              {static_cast<int>(s), static_cast<int>(c), static_cast<std::uint32_t>(i)});
        }
      }
    }
  }
}

/// Runs the sections of a plan in the order of a training run.
class Run {
 public:
  Run(const Plan& plan,
      ValueReference& reference,
      const ValueFacts& facts,
      const ValueCheckOptions& options,
      ValueReport& report)
      : plan_(plan),
        verifier_(plan, reference, facts, options, report),
        machine_(plan, verifier_),
        options_(options),
        report_(report) {}

  void all() {
    bool goes_on = sections(SectionKind::kInit);
    if (goes_on) {
      verifier_.note_parameters(machine_);
    }
    const int variants = static_cast<int>(plan_.variant_of_iteration.size());
    const int iterations = options_.iterations > 0 ? options_.iterations : variants + 1;
    for (int k = 0; k < iterations && goes_on && report_.ok(); ++k) {
      goes_on = section(static_cast<int>(&plan_.step(k) - plan_.sections.data()), k);
      if (goes_on) {
        verifier_.check_parameters(machine_);
      }
    }
    if (options_.evaluate && goes_on && report_.ok()) {
      sections(SectionKind::kEvaluate);
      sections(SectionKind::kSave);
    }
    report_.operations = machine_.operations_run();
    report_.first_difference = verifier_.first_difference();
    if (report_.ok()) {
      list_idle(plan_, machine_, report_);
    }
  }

 private:
  bool section(int index, int iteration) {
    verifier_.begin_section(index, iteration);
    const bool finished = machine_.run(index, iteration);
    if (finished) {
      verifier_.end_section();
    }
    return finished;
  }
  bool sections(SectionKind kind) {
    bool goes_on = true;
    for (std::size_t s = 0; s < plan_.sections.size(); ++s) {
      if (plan_.sections[s].kind == kind) {
        goes_on = section(static_cast<int>(s), kEvaluationIteration) && goes_on;
      }
    }
    return goes_on;
  }

  const Plan& plan_;
  ValueVerifier verifier_;
  ValueMachine machine_;
  const ValueCheckOptions& options_;
  ValueReport& report_;
};

}  // namespace

std::string ValueReport::text() const {
  if (ok()) {
    return "values agree";
  }
  std::string text;
  for (const ValueProblem& problem : problems) {
    text += problem.message + "\n";
  }
  if (!first_difference.empty()) {
    text += "results begin to differ at " + first_difference + "\n";
  }
  return text;
}

ValueReport value_check(const Plan& plan,
                        ValueReference& reference,
                        const ValueFacts& facts,
                        const ValueCheckOptions& options) {
  LOCKSTEP_CHECK(facts.setting == reference.setting(),
                 "the reference was made for another number of ranks or micro-batches");
  ValueReport report;
  reference.iteration(0);
  if (!reference.problem().empty()) {
    report.problems.push_back({0, 0, -1, -1, reference.problem()});
    return report;
  }
  Run(plan, reference, facts, options, report).all();
  if (!report.ok() && options.explain && !reference.traces()) {
    ValueReference traced(reference.plan(), reference.setting(), true);
    ValueReport again;
    Run(plan, traced, facts, options, again).all();
    report.first_difference = again.first_difference;
  }
  if (!reference.problem().empty() && report.ok()) {
    report.problems.push_back({0, 0, -1, -1, reference.problem()});
  }
  return report;
}

ValueReport value_check(const Plan& plan,
                        const Plan& one_rank_plan,
                        const ValueCheckOptions& options) {
  const ValueFacts facts = value_facts(plan);
  ValueReference reference(one_rank_plan, facts.setting);
  return value_check(plan, reference, facts, options);
}

}  // namespace lockstep
