#include "core/traffic.h"

#include <algorithm>

#include "core/plan_text.h"

namespace lockstep {
namespace {

bool same(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.communicator == b.communicator && a.dtype == b.dtype &&
         a.has(kControl) == b.has(kControl) &&
         (a.kind != OperationKind::kCollective || a.collective == b.collective);
}

bool is_sharded(const Operation& op) {
  return op.kind == OperationKind::kCollective &&
         (op.collective == Collective::kAllGather || op.collective == Collective::kReduceScatter);
}

/// Every member sends as much as every other.
bool is_even(const Operation& op) {
  return op.kind == OperationKind::kSend || is_sharded(op) ||
         (op.kind == OperationKind::kCollective && op.collective == Collective::kAllReduce);
}

}  // namespace

bool is_communication(const Operation& op) {
  return op.kind == OperationKind::kCollective || op.kind == OperationKind::kSend ||
         op.kind == OperationKind::kRecv;
}

std::string kind_text(const Operation& op) {
  return std::string(op.kind == OperationKind::kCollective ? name_of(op.collective)
                                                           : name_of(op.kind));
}

std::int64_t group_size(const Mesh& mesh, const Communicator& group) {
  if (group.pipeline_coordinates == 0) {
    return mesh.count(group.axes);
  }
  std::int64_t stages = 0;
  for (std::uint64_t bits = group.pipeline_coordinates; bits != 0; bits &= bits - 1) {
    ++stages;
  }
  return mesh.count(group.axes) / mesh.size(Axis::kPipeline) * stages;
}

std::int64_t tensor_bytes(const Operation& op, std::int64_t members) {
  const std::int64_t bytes = op.elements * size_of(op.dtype);
  return is_sharded(op) ? bytes * members : bytes;
}

double mean_sent_bytes(const Operation& op, std::int64_t members) {
  const auto bytes = static_cast<double>(tensor_bytes(op, members));
  if (op.kind == OperationKind::kSend) {
    return bytes;
  }
  if (op.kind != OperationKind::kCollective || op.collective == Collective::kBarrier) {
    return 0;
  }
  const double others = static_cast<double>(members - 1) / static_cast<double>(members);
  return op.collective == Collective::kAllReduce ? 2 * others * bytes : others * bytes;
}

std::vector<Traffic> traffic_of(const Plan& plan, const Program& program) {
  std::vector<Traffic> all;
  std::vector<const Operation*> first;  // by entry
  for (const Operation& op : program.operations) {
    if (!is_communication(op)) {
      continue;
    }
    const auto found = std::find_if(
        first.begin(), first.end(), [&op](const Operation* other) { return same(*other, op); });
    const auto index = static_cast<std::size_t>(found - first.begin());
    const Communicator& group = plan.communicators[op.communicator];
    if (found == first.end()) {
      first.push_back(&op);
      Traffic& entry = all.emplace_back();
      entry.group = group_text(plan.mesh, group);
      entry.kind = kind_text(op);
      entry.dtype = name_of(op.dtype);
      entry.control = op.has(kControl);
    }
    const std::int64_t members = group_size(plan.mesh, group);
    ++all[index].messages;
    all[index].bytes += tensor_bytes(op, members);
    all[index].mean_sent += mean_sent_bytes(op, members);
    all[index].sent += is_even(op) ? mean_sent_bytes(op, members) : 0;
  }
  return all;
}

}  // namespace lockstep
