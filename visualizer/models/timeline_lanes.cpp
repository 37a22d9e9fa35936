#include "visualizer/models/timeline_lanes.h"

#include <utility>

#include <fmt/format.h>

#include "core/model_graph.h"
#include "core/plan_text.h"
#include "core/report_text.h"
#include "visualizer/models/timeline_text.h"

namespace lockstep::view {
namespace {

/// "matmul", "all_gather dp", "send": what it does, without where.
std::string action_of(const Plan& plan, const Operation& op) {
  switch (op.kind) {
    case OperationKind::kCollective:
      return fmt::format("{} {}",
                         name_of(op.collective),
                         group_text(plan.mesh, plan.communicators[op.communicator]));
    case OperationKind::kSend:
    case OperationKind::kRecv:
    case OperationKind::kCopy:
    case OperationKind::kAlloc:
    case OperationKind::kFree:
      return std::string(name_of(op.kind));
    default:
      return std::string(name_of(op.work));
  }
}

std::string exact(Nanoseconds time) {
  return fmt::format("{} ({} ns)", time_text(time, true), grouped(time));
}

}  // namespace

TimelineLanes::TimelineLanes(const Plan& plan, const TraceStep& step, const std::vector<int>& ranks)
    : timeline_(plan, step, ranks) {
  rows_.reserve(timeline_.rows().size());
  for (const TimelineRow& row : timeline_.rows()) {
    rows_.push_back({fmt::format("rank {}", row.rank), std::string(name_of(row.stream)), row.rank});
  }
}

std::int32_t TimelineLanes::track_of(std::size_t row) const {
  const auto rank = static_cast<std::size_t>(timeline_.rows()[row].rank);
  return timeline_.index().step().track_of_rank[rank];
}

const Operation& TimelineLanes::operation(std::size_t row, std::uint32_t item) const {
  return timeline_.index().operation({track_of(row), item});
}

std::vector<LaneBox> TimelineLanes::boxes(std::size_t row,
                                          const TimeWindow& window,
                                          Nanoseconds narrowest) const {
  const std::vector<TimelineBox> found = timeline_.boxes(timeline_.rows()[row], window, narrowest);
  std::vector<LaneBox> boxes;
  boxes.reserve(found.size());
  for (const TimelineBox& box : found) {
    boxes.push_back({box.begin, box.end, box.busy, box.paint, box.operation, box.spans});
  }
  return boxes;
}

std::string TimelineLanes::label(std::size_t row, const LaneBox& box) const {
  if (box.item == kNoItem) {
    return fmt::format("{} \xC3\x97", box.count);
  }
  const Plan& plan = timeline_.index().plan();
  const Operation& op = operation(row, box.item);
  std::string text = action_of(plan, op);
  if (op.module != kNoModule) {
    text += " " + plan.graph->module_name(op.module);
  }
  if (op.microbatch >= 0 && plan.microbatches > 1) {
    text += fmt::format(" #{}", op.microbatch);
  }
  return text;
}

DetailLines TimelineLanes::details(std::size_t row, const LaneBox& box) const {
  const LaneRow& lane = rows_[row];
  DetailLines lines{{"where", lane.group + ", " + lane.name}};
  if (box.item == kNoItem) {
    lines.emplace_back("operations", grouped(box.count));
    lines.emplace_back("from", exact(box.begin));
    lines.emplace_back("busy", exact(box.busy));
    lines.emplace_back("mostly", std::string(name_of(box.paint)));
    return lines;
  }
  const TraceIndex& index = timeline_.index();
  const std::int32_t track = track_of(row);
  const SpanTimes times = index.times({track, box.item});
  lines.emplace_back(
      "what",
      operation_text(
          index.plan(), index.track(track).class_index, index.operation({track, box.item})));
  lines.emplace_back("issued by the host", exact(times.issued));
  lines.emplace_back("ready", exact(times.arrived));
  lines.emplace_back("started", exact(times.started));
  lines.emplace_back("ended", exact(times.ended));
  lines.emplace_back("ran for", exact(times.ended - times.started));
  if (times.started > times.arrived) {
    lines.emplace_back("waited for others", exact(times.started - times.arrived));
  }
  lines.emplace_back("operation", grouped(box.item));
  return lines;
}

LaneBox TimelineLanes::find(std::size_t row, std::uint32_t item) const {
  const TraceIndex& index = timeline_.index();
  const ProgramIndex& program = index.program(track_of(row));
  if (item >= program.slot.size() || program.slot[item] == kNoSpan) {
    return {.count = 0};
  }
  const Operation& op = operation(row, item);
  if (op.stream != timeline_.rows()[row].stream) {
    return {.count = 0};
  }
  const SpanTimes times = index.times({track_of(row), item});
  return {times.started, times.ended, times.ended - times.started, paint_of(op), item, 1};
}

}  // namespace lockstep::view
