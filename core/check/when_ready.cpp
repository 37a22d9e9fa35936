// Rule "when_ready": which kWhenReady operations never launch, and whether somebody asks.
//
// PyTorch's DDP launches the all-reduce of a bucket when its last gradient is ready, and buckets
// strictly in order. A parameter that the model does not use therefore keeps its bucket and all
// later ones from launching, without any error in that iteration; the next forward finds out.

#include <algorithm>

#include <fmt/format.h>

#include "core/check/plan_rules.h"
#include "core/plan_text.h"

namespace lockstep {
namespace {

std::vector<std::uint32_t> never_launched_of(const Program& program) {
  std::vector<std::uint32_t> result;
  std::vector<std::uint8_t> stuck_communicators;
  for (std::uint32_t index = 0; index < program.operations.size(); ++index) {
    const Operation& op = program.operations[index];
    if (op.issue != Issue::kWhenReady) {
      continue;
    }
    const auto stuck = [&](std::uint32_t on) {
      return on == kNeverIssued || std::binary_search(result.begin(), result.end(), on);
    };
    const std::span<const std::uint32_t> dependencies = program.dependencies_of(op);
    const bool behind =
        std::find(stuck_communicators.begin(), stuck_communicators.end(), op.communicator) !=
        stuck_communicators.end();
    if (behind || std::any_of(dependencies.begin(), dependencies.end(), stuck)) {
      result.push_back(index);
      if (op.communicator != kNoCommunicator) {
        stuck_communicators.push_back(op.communicator);
      }
    }
  }
  return result;
}

/// kExpectIssued stands in front of the section's collectives, so that the error comes before a
/// hang.
bool expects_issued(const Program& program) {
  for (const Operation& op : program.operations) {
    if (op.kind == OperationKind::kCollective) {
      return false;
    }
    if (op.work == Work::kExpectIssued) {
      return true;
    }
  }
  return false;
}

int section_of_iteration(const Plan& plan, std::size_t iteration) {
  const std::vector<std::int32_t>& variants = plan.variant_of_iteration;
  const std::int32_t variant = variants[std::min(iteration, variants.size() - 1)];
  return static_cast<int>(plan.find(SectionKind::kStep, variant) - plan.sections.data());
}

void check_next_step(const CheckContext& context, std::size_t iteration) {
  const int section = section_of_iteration(context.plan, iteration);
  const int next = section_of_iteration(context.plan, iteration + 1);
  for (int index = 0; index < context.plan.class_count(); ++index) {
    const std::vector<std::uint32_t>& list =
        context.never_launched[static_cast<std::size_t>(section)][static_cast<std::size_t>(index)];
    if (!list.empty() && !expects_issued(context.program(next, index))) {
      context.report(PlanRule::kWhenReady,
                     section,
                     {index, list.front()},
                     fmt::format("never launches, and {} does not begin with expect_issued",
                                 section_text(context.plan, next)));
    }
  }
}

}  // namespace

void find_never_launched(CheckContext& context) {
  for (const Section& section : context.plan.sections) {
    std::vector<std::vector<std::uint32_t>>& of_section = context.never_launched.emplace_back();
    for (const Program& program : section.programs) {
      of_section.push_back(never_launched_of(program));
    }
  }
  for (std::size_t iteration = 0; iteration < context.plan.variant_of_iteration.size();
       ++iteration) {
    check_next_step(context, iteration);
  }
}

}  // namespace lockstep
