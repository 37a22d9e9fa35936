// Plan rules: the parts of check_plan(), one source file each. Not for callers; tests go through
// check_plan().
//
// Every rule looks at all programs and adds what it finds to Context::problems. check_structure()
// goes first: the others index without asking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/check/class_groups.h"
#include "core/check/plan_check.h"
#include "core/plan.h"

namespace lockstep {

/// An operation by its class (of a section known from the context).
struct ClassOperation {
  int class_index = -1;
  std::uint32_t operation = 0;
};

/// What the rules of one run share.
struct CheckContext {
  const Plan& plan;
  PlanProblems& problems;
  std::vector<ClassCoordinates> coordinates;  ///< by class
  std::vector<ClassGroups> groups;            ///< by communicator
  /// By section and class, ascending: the kWhenReady operations that never launch.
  std::vector<std::vector<std::vector<std::uint32_t>>> never_launched;

  const Program& program(int section, int class_index) const {
    return plan.sections[static_cast<std::size_t>(section)]
        .programs[static_cast<std::size_t>(class_index)];
  }
  const std::vector<Buffer>& buffers(int class_index) const {
    return plan.buffers[static_cast<std::size_t>(class_index)];
  }
  bool launches(int section, int class_index, std::uint32_t operation) const;

  /// Adds "<describe(operation)>: <message>".
  void report(PlanRule rule,
              int section,
              const ClassOperation& where,
              const std::string& message) const;
};

/// Mesh, sections and buffer tables fit each other: what check_structure() begins with.
bool check_tables(const CheckContext& context);

/// Fills `coordinates` and `groups`; indices and enumerators in range. False when the other rules
/// cannot run on this plan.
bool check_structure(CheckContext& context);

/// Fills `never_launched` and asks for kExpectIssued in the next step.
void find_never_launched(CheckContext& context);

void check_bounds(const CheckContext& context);
void check_sequences(const CheckContext& context);

/// The send or recv at the other end, by class: ascending pairs of (operation, its partner).
struct MessagePartner {
  std::uint32_t operation = 0;
  ClassOperation partner;
};
using MessagePartners = std::vector<std::vector<MessagePartner>>;
/// Checks the sends and receives of a section and returns who meets whom.
MessagePartners check_messages(const CheckContext& context, int section);

void check_progress(const CheckContext& context, int section, const MessagePartners& partners);

/// Lifetimes, unwritten reads and guards, which need the sections in the order of execution.
void check_lifetimes(const CheckContext& context);

void check_races(const CheckContext& context);

/// Whether output `output` of the operation is added to what the buffer holds, so that it is read.
bool accumulates(const Operation& op, int output);

}  // namespace lockstep
