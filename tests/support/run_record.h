// RunRecord: what a rank's communicators and device saw, beside what the plan says they were to
// see. The first is read from Communicator and Device, which know no plan; the second from the
// operations alone, by rule R1 of core/plan.h: issue order is accounting order.
//
//     RunRecord planned = planned_record(plan, rank, section);
//     RunRecord done = take_record(job, rank);
//     for (const std::string& line : differences(planned, done)) ...
#pragma once

#include <string>
#include <vector>

#include "core/plan.h"
#include "executor/job.h"

namespace lockstep::test {

struct RunRecord {
  /// By Plan::communicators; empty where the rank is no member.
  std::vector<std::vector<exec::IssuedTransfer>> issued;
  std::vector<std::vector<int>> members;
  std::vector<exec::MemoryEvent> memory;
};

/// Of one section.
RunRecord planned_record(const Plan& plan, int rank, const Section& section);
/// Since the last take_record() of the rank.
RunRecord take_record(exec::Job& job, int rank);

/// One line for each communicator and one for memory where the two differ: what comes first.
std::vector<std::string> differences(const RunRecord& planned, const RunRecord& done);

}  // namespace lockstep::test
