#include "visualizer/models/timeline_lanes.h"

#include <utility>

#include <fmt/format.h>

#include "core/model_graph.h"
#include "core/plan_text.h"
#include "core/report_text.h"
#include "visualizer/models/plan_names.h"
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
  name_rows();
}

void TimelineLanes::name_rows() {
  for (std::size_t i = rows_.size(); i < timeline_.rows().size(); ++i) {
    const TimelineRow& row = timeline_.rows()[i];
    rows_.push_back(
        {ranks_text(index().step(), row.rank), std::string(name_of(row.stream)), row.rank});
  }
}

void TimelineLanes::show_track(std::int32_t track) {
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (track_of(row) == track) {
      return;
    }
  }
  timeline_.add_rank(index().track(track).ranks.front());
  name_rows();
}

std::optional<std::size_t> TimelineLanes::row_of(const TrackOperation& at) const {
  const Stream stream = index().operation(at).stream;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (timeline_.rows()[row].stream == stream && track_of(row) == at.track) {
      return row;
    }
  }
  return std::nullopt;
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
  return name(operation_at(row, box.item));
}

std::string TimelineLanes::name(const TrackOperation& at) const {
  const Plan& plan = index().plan();
  const Operation& op = index().operation(at);
  std::string text = action_of(plan, op);
  if (op.module != kNoModule) {
    text += " " + plan.graph->module_name(op.module);
  }
  if (op.microbatch >= 0 && plan.microbatches > 1) {
    text += fmt::format(" #{}", op.microbatch);
  }
  return text;
}

/// All that name() reads of an operation, side by side.
std::uint64_t TimelineLanes::name_key(std::size_t row, std::uint32_t item) const {
  const Operation& op = operation(row, item);
  const auto kind = static_cast<std::uint64_t>(op.kind);
  const auto work = static_cast<std::uint64_t>(op.work);
  const auto collective = static_cast<std::uint64_t>(op.collective);
  const auto microbatch = static_cast<std::uint64_t>(static_cast<std::uint16_t>(op.microbatch));
  const std::uint64_t module = op.module & 0xffffffU;
  return kind << 60U | work << 52U | collective << 48U |
         static_cast<std::uint64_t>(op.communicator) << 40U | microbatch << 24U | module;
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
