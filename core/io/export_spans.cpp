#include "core/io/export_spans.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/names.h"
#include "core/plan_text.h"

namespace lockstep {
namespace {

constexpr std::size_t kLongestName = 160;

}  // namespace

int export_lane(const Operation& op, int stage) {
  return op.kind != OperationKind::kRecv ? static_cast<int>(op.stream)
         : op.peer < stage               ? kStreamCount
                                         : kStreamCount + 1;
}

std::string export_lane_name(int lane) {
  return lane < kStreamCount    ? std::string(name_of(static_cast<Stream>(lane)))
         : lane == kStreamCount ? "recv from earlier stages"
                                : "recv from later stages";
}

ExportLanes export_lanes(const Plan& plan, const Trace& trace, int rank) {
  ExportLanes used{};
  const int stage = plan.mesh.coordinate(rank, Axis::kPipeline);
  for (const TraceStep& step : trace.steps) {
    const Section& section = plan.sections[static_cast<std::size_t>(step.section)];
    const auto index = static_cast<std::size_t>(plan.class_of_rank(rank));
    for (const Operation& op : section.programs[index].operations) {
      used[static_cast<std::size_t>(export_lane(op, stage))] = true;
    }
  }
  return used;
}

std::string export_name(const Plan& plan, int class_index, const Operation& op) {
  const std::string text = operation_text(plan, class_index, op);
  std::size_t end = text.find(", ");
  if (op.module != kNoModule && end != std::string::npos) {
    end = text.find(", ", end + 2);
  }
  return printable(text.substr(0, end), kLongestName);
}

std::vector<ExportSpan> export_spans(const TraceIndex& index, int rank) {
  const TraceStep& step = index.step();
  const int track = step.track_of_rank[static_cast<std::size_t>(rank)];
  const int stage = index.plan().mesh.coordinate(rank, Axis::kPipeline);
  std::array<Nanoseconds, kExportLanes> cursor{};
  cursor.fill(step.begin);
  std::vector<ExportSpan> spans;
  spans.reserve(index.program(track).operations.size());
  for (const std::uint32_t operation : index.program(track).operations) {
    const SpanTimes times = index.times({track, operation});
    ExportSpan span;
    span.operation = operation;
    span.lane = export_lane(index.operation({track, operation}), stage);
    Nanoseconds& free_from = cursor[static_cast<std::size_t>(span.lane)];
    span.arrived = std::clamp(times.arrived, free_from, std::max(free_from, step.end));
    span.started = std::clamp(times.started, span.arrived, std::max(span.arrived, step.end));
    span.ended = std::clamp(times.ended, span.started, std::max(span.started, step.end));
    span.issued = std::clamp(times.issued, step.begin, std::max(step.begin, span.arrived));
    free_from = span.ended;
    spans.push_back(span);
  }
  return spans;
}

std::vector<int> export_ranks(const Plan& plan, const Trace& trace, std::vector<int> wanted) {
  if (trace.steps.empty()) {
    throw BadInputError("trace", "it holds no step");
  }
  for (const TraceStep& step : trace.steps) {
    check_trace(plan, step);
  }
  if (wanted.empty()) {
    for (const TraceTrack& track : trace.steps.front().tracks) {
      wanted.push_back(track.ranks.front());
    }
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  for (const int rank : wanted) {
    if (rank < 0 || rank >= plan.mesh.world_size()) {
      throw UsageError("trace export",
                       fmt::format("rank {}: there are {}, from 0", rank, plan.mesh.world_size()));
    }
  }
  return wanted;
}

std::string microseconds_text(Nanoseconds time) {
  return time % 1000 == 0 ? std::to_string(time / 1000)
                          : fmt::format("{}.{:03}", time / 1000, time % 1000);
}

}  // namespace lockstep
