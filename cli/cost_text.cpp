#include "cli/cost_text.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "core/plan_text.h"
#include "core/report_text.h"
#include "core/traffic.h"
#include "simulator/communication_cost.h"
#include "simulator/compute_cost.h"
#include "simulator/placement.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kShown = 16;

/// Operations of one price.
struct Priced {
  const Operation* op = nullptr;
  std::int64_t count = 0;
  Nanoseconds time = 0;
};

auto key_of(const Operation& op) {
  return std::make_tuple(
      op.kind, op.work, op.collective, op.communicator, op.dtype, op.shape, op.elements);
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape.extent) {
    if (extent != 0) {
      text += (text.empty() ? "" : " x ") + grouped(extent);
    }
  }
  return text;
}

std::string compute_formula(const Scenario& scenario, const Plan& plan, const Operation& op) {
  const DeviceSpec& device = scenario.cluster.device;
  const sim::ComputeCost cost =
      sim::compute_cost(device, op.work, plan.shapes[op.shape], op.dtype, plan.tf32);
  if (cost.compute_bound) {
    return fmt::format("{}FLOP at {:.0f} % of the peak = {:.1f} us",
                       si_text(cost.flops),
                       100 * cost.efficiency,
                       cost.seconds * 1e6);
  }
  return fmt::format("{} at {:.0f} % of {}B/s = {:.1f} us",
                     bytes_text(static_cast<std::int64_t>(cost.bytes)),
                     100 * cost.efficiency,
                     si_text(device.memory_bandwidth),
                     cost.seconds * 1e6);
}

std::string message_formula(const Scenario& scenario,
                            const Plan& plan,
                            const Operation& op,
                            int rank) {
  const Communicator& group = plan.communicators[op.communicator];
  if (op.kind == OperationKind::kCollective) {
    const sim::GroupPlacement placement =
        sim::placement_of(scenario.cluster, members(plan, group, rank));
    return sim::explain(
        sim::collective_cost(scenario.cluster, placement, op.collective, op.elements, op.dtype));
  }
  const int peer = plan.mesh.with(rank, Axis::kPipeline, op.peer);
  const std::vector<int> pair{std::min(rank, peer), std::max(rank, peer)};
  return sim::explain(sim::message_cost(scenario.cluster,
                                        sim::placement_of(scenario.cluster, pair),
                                        op.elements * size_of(op.dtype)));
}

std::string what_text(const Plan& plan, const Operation& op) {
  if (!is_communication(op)) {
    return fmt::format("{} {}", name_of(op.work), shape_text(plan.shapes[op.shape]));
  }
  return fmt::format("{} {} {}",
                     kind_text(op),
                     group_text(plan.communicators[op.communicator]),
                     bytes_text(op.elements * size_of(op.dtype)));
}

}  // namespace

std::string cost_text(const Scenario& scenario, const Plan& plan, const TraceStep& step) {
  const TraceTrack& track = step.tracks.front();
  const Program& program = plan.sections[static_cast<std::size_t>(step.section)]
                               .programs[static_cast<std::size_t>(track.class_index)];
  std::map<decltype(key_of(Operation{})), Priced> prices;
  for (const Span& span : track.spans) {
    const Operation& op = program.operations[span.operation];
    Priced& priced = prices[key_of(op)];
    priced.op = &op;
    ++priced.count;
    priced.time += span.ended - span.started;
  }
  std::vector<Priced> sorted;
  for (const auto& [key, priced] : prices) {
    if (priced.op->kind != OperationKind::kHost) {
      sorted.push_back(priced);
    }
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const Priced& a, const Priced& b) {
    return a.time > b.time;
  });
  TextTable table(
      {{"ms", Align::kRight}, {"times", Align::kRight}, {"operation"}, {"one of them"}});
  const int rank = track.ranks.front();
  for (std::size_t i = 0; i < std::min(sorted.size(), kShown); ++i) {
    const Operation& op = *sorted[i].op;
    table.add({fmt::format("{:.3f}", static_cast<double>(sorted[i].time) * 1e-6),
               grouped(sorted[i].count),
               what_text(plan, op),
               is_communication(op) ? message_formula(scenario, plan, op, rank)
                                    : compute_formula(scenario, plan, op)});
  }
  return fmt::format(
             "what costs most on rank {} (longer in the trace where communication slows "
             "it)\n",
             rank) +
         table.text("  ");
}

}  // namespace lockstep::cli
