#include "tests/support/run_record.h"

#include <algorithm>

#include <fmt/format.h>

namespace lockstep::test {
namespace {

bool is_transfer(const Operation& op) {
  return op.kind == OperationKind::kCollective || op.kind == OperationKind::kSend ||
         op.kind == OperationKind::kRecv;
}

std::string text(const exec::IssuedTransfer& it) {
  return fmt::format(
      "{} {} {} {} {} peer {} tag {}",
      it.kind == OperationKind::kCollective ? name_of(it.collective) : name_of(it.kind),
      name_of(it.reduction),
      it.elements,
      name_of(it.dtype),
      it.kind == OperationKind::kCollective ? "root" : "with",
      it.peer,
      it.tag);
}

std::string text(const exec::MemoryEvent& it) {
  return fmt::format(
      "{} {} bytes of {}", it.freed ? "free" : "alloc", it.bytes, name_of(it.category));
}

/// "what #3: planned ..., done ..." at the first place where the two differ.
template <typename Entry>
void compare(const std::string& what,
             const std::vector<Entry>& planned,
             const std::vector<Entry>& done,
             std::vector<std::string>& found) {
  const auto [p, d] = std::mismatch(planned.begin(), planned.end(), done.begin(), done.end());
  if (p != planned.end() || d != done.end()) {
    found.push_back(fmt::format("{} #{}: planned {}, done {}",
                                what,
                                p - planned.begin(),
                                p == planned.end() ? "nothing" : text(*p),
                                d == done.end() ? "nothing" : text(*d)));
  }
}

}  // namespace

RunRecord planned_record(const Plan& plan, int rank, const Section& section) {
  RunRecord record;
  record.issued.resize(plan.communicators.size());
  for (const Communicator& each : plan.communicators) {
    std::vector<int> group = members(plan, each, rank);
    const bool inside = std::find(group.begin(), group.end(), rank) != group.end();
    record.members.push_back(inside ? std::move(group) : std::vector<int>());
  }
  const auto c = static_cast<std::size_t>(plan.class_of_rank(rank));
  const std::vector<Buffer>& buffers = plan.buffers[c];
  for (const Operation& op : section.programs[c].operations) {
    if (is_transfer(op)) {
      record.issued[op.communicator].push_back(
          {op.kind,
           op.collective,
           op.reduction,
           op.dtype,
           op.kind == OperationKind::kCollective ? op.root : op.peer,
           op.tag,
           op.elements});
    } else if (op.kind == OperationKind::kAlloc || op.kind == OperationKind::kFree) {
      const Buffer& buffer = buffers[op.buffer];
      if (buffer.alias_of == kNoBuffer) {
        record.memory.push_back({buffer.category,
                                 buffer.storage,
                                 op.kind == OperationKind::kFree,
                                 buffer.elements * size_of(buffer.dtype)});
      }
    }
  }
  return record;
}

RunRecord take_record(exec::Job& job, int rank) {
  RunRecord record;
  for (const auto& communicator : job.communicators(rank)) {
    std::vector<exec::IssuedTransfer> issued;
    std::vector<int> group;
    if (communicator != nullptr) {
      issued.assign(communicator->issued().begin(), communicator->issued().end());
      group.assign(communicator->members().begin(), communicator->members().end());
      communicator->forget_issued();
    }
    record.issued.push_back(std::move(issued));
    record.members.push_back(std::move(group));
  }
  exec::MemoryAccount& memory = job.device(rank).memory();
  record.memory.assign(memory.events().begin(), memory.events().end());
  memory.forget_events();
  return record;
}

std::vector<std::string> differences(const RunRecord& planned, const RunRecord& done) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < planned.issued.size(); ++i) {
    const std::string name = fmt::format("communicator {}", i);
    if (i >= done.issued.size() || planned.members[i] != done.members[i]) {
      found.push_back(name + " has other members");
      continue;
    }
    compare(name, planned.issued[i], done.issued[i], found);
  }
  compare("memory", planned.memory, done.memory, found);
  return found;
}

}  // namespace lockstep::test
