#include "cli/plan_traffic.h"

#include <algorithm>

#include "core/plan_text.h"

namespace lockstep::cli {
namespace {

std::string kind_of(const Operation& op) {
  return std::string(op.kind == OperationKind::kCollective ? name_of(op.collective)
                                                           : name_of(op.kind));
}

bool same(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.communicator == b.communicator && a.dtype == b.dtype &&
         a.has(kControl) == b.has(kControl) &&
         (a.kind != OperationKind::kCollective || a.collective == b.collective);
}

/// Members of the group, as seen by any of them.
std::int64_t size_of_group(const Plan& plan, const Communicator& group) {
  if (group.pipeline_coordinates == 0) {
    return plan.mesh.count(group.axes);
  }
  std::int64_t stages = 0;
  for (std::uint64_t bits = group.pipeline_coordinates; bits != 0; bits &= bits - 1) {
    ++stages;
  }
  return plan.mesh.count(group.axes) / plan.mesh.size(Axis::kPipeline) * stages;
}

void add(Traffic& traffic, const Operation& op, std::int64_t members) {
  const std::int64_t bytes = op.elements * size_of(op.dtype);
  const bool one_of_all =
      op.kind == OperationKind::kCollective &&
      (op.collective == Collective::kAllGather || op.collective == Collective::kReduceScatter);
  ++traffic.messages;
  traffic.bytes += one_of_all ? bytes * members : bytes;
  if (op.kind == OperationKind::kSend) {
    traffic.sent += static_cast<double>(bytes);
  } else if (one_of_all) {
    traffic.sent += static_cast<double>(bytes * (members - 1));
  } else if (op.kind == OperationKind::kCollective && op.collective == Collective::kAllReduce) {
    traffic.sent += static_cast<double>(2 * (members - 1)) / static_cast<double>(members) *
                    static_cast<double>(bytes);
  }
}

}  // namespace

std::vector<Traffic> traffic_of(const Plan& plan, const Program& program) {
  std::vector<Traffic> all;
  std::vector<const Operation*> first;  // by entry
  for (const Operation& op : program.operations) {
    if (op.kind != OperationKind::kCollective && op.kind != OperationKind::kSend &&
        op.kind != OperationKind::kRecv) {
      continue;
    }
    const auto found = std::find_if(
        first.begin(), first.end(), [&op](const Operation* other) { return same(*other, op); });
    const auto index = static_cast<std::size_t>(found - first.begin());
    const Communicator& group = plan.communicators[op.communicator];
    if (found == first.end()) {
      first.push_back(&op);
      all.push_back({group_text(plan.mesh, group),
                     kind_of(op),
                     std::string(name_of(op.dtype)),
                     op.has(kControl)});
    }
    add(all[index], op, size_of_group(plan, group));
  }
  return all;
}

}  // namespace lockstep::cli
