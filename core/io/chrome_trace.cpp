#include "core/io/chrome_trace.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/io/event_sink.h"
#include "core/io/export_spans.h"
#include "core/io/field_writer.h"
#include "core/memory_timeline.h"
#include "core/plan_text.h"
#include "core/trace_index.h"
#include "core/traffic.h"

namespace lockstep {
namespace {

constexpr int kStepThread = kExportLanes + 1;

int pid_of(int rank) {
  return rank + 1;
}

/// What happens in one step.
class StepWriter {
 public:
  StepWriter(const Plan& plan,
             const TraceStep& step,
             Nanoseconds zero,
             const std::vector<int>& ranks,
             EventSink& sink)
      : index_(plan, step), plan_(plan), step_(step), zero_(zero), ranks_(ranks), sink_(sink) {}

  void write_rank(int rank, const ChromeTraceOptions& options) {
    rank_ = rank;
    track_ = step_.track_of_rank[static_cast<std::size_t>(rank)];
    slice(kStepThread,
          fmt::format("{} {}", section_text(plan_, step_.section), step_.iteration),
          "step",
          step_.begin,
          step_.end,
          "");
    for (const ExportSpan& span : export_spans(index_, rank)) {
      write_span(span, options.flows);
    }
    if (options.memory) {
      write_memory();
    }
  }

 private:
  std::string stamp(Nanoseconds time) const { return microseconds_text(time - zero_); }

  void slice(int tid,
             std::string_view name,
             std::string_view category,
             Nanoseconds begin,
             Nanoseconds end,
             std::string_view args) {
    if (end <= begin) {
      return;  // a slice without length has no place among its neighbours
    }
    sink_.event(fmt::format(
        R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{{}}}}})",
        pid_of(rank_),
        tid,
        stamp(begin),
        microseconds_text(end - begin),
        json_string(name),
        category,
        args));
  }

  std::string arguments(std::uint32_t operation,
                        const Operation& op,
                        const SpanTimes& times) const {
    std::string text = fmt::format(R"("operation":{},"phase":"{}")", operation, name_of(op.phase));
    if (op.microbatch >= 0) {
      text += fmt::format(R"(,"micro-batch":{})", op.microbatch);
    }
    if (is_communication(op)) {
      const std::int64_t members = group_size(plan_.mesh, index_.communicator(op));
      text +=
          fmt::format(R"(,"bytes":{},"group size":{},"waited us":{})",
                      tensor_bytes(op, members),
                      members,
                      microseconds_text(std::max<Nanoseconds>(0, times.started - times.arrived)));
    }
    if (op.has(kControl)) {
      text += R"(,"control":true)";
    }
    return text;
  }

  void write_span(const ExportSpan& span, bool flows) {
    const Operation& op = index_.operation({track_, span.operation});
    const int tid = span.lane + 1;
    const bool message = is_communication(op);
    const std::string name = export_name(plan_, index_.track(track_).class_index, op);
    if (message) {
      slice(tid, "wait: " + name, "waiting", span.arrived, span.started, "");
    }
    const char* category = message                           ? "communication"
                           : op.kind == OperationKind::kHost ? "host"
                                                             : "compute";
    const SpanTimes times = index_.times({track_, span.operation});
    slice(tid, name, category, span.started, span.ended, arguments(span.operation, op, times));
    if (flows && message && op.kind != OperationKind::kCollective) {
      write_flow(span.operation, op, span.started);
    }
  }

  /// An arrow from the sender's slice to the receiver's, when both are drawn.
  void write_flow(std::uint32_t operation, const Operation& op, Nanoseconds started) {
    const int peer = plan_.mesh.with(rank_, Axis::kPipeline, op.peer);
    const TrackOperation other = index_.partner({track_, operation});
    const auto lasts = [&](const TrackOperation& at) {
      const SpanTimes times = index_.times(at);
      return times.ended > times.started;
    };
    if (!std::binary_search(ranks_.begin(), ranks_.end(), peer) || other.track < 0 ||
        !lasts(other) || !lasts({track_, operation})) {
      return;
    }
    const bool sends = op.kind == OperationKind::kSend;
    const std::uint64_t sender = static_cast<std::uint64_t>(sends ? rank_ : peer);
    sink_.event(fmt::format(
        R"({{"ph":"{}","pid":{},"tid":{},"ts":{},"id":{},"name":"message of step {}","cat":"flow"{}}})",
        sends ? "s" : "f",
        pid_of(rank_),
        export_lane(op, plan_.mesh.coordinate(rank_, Axis::kPipeline)) + 1,
        stamp(started),
        (sender << 32U) | (sends ? operation : other.operation),
        step_.iteration,
        sends ? "" : R"(,"bp":"e")"));
  }

  /// A key per category, each a counter track of its own; after the first sample only what changed.
  void write_memory() {
    CategoryBytes before{};
    bool first = true;
    for (const MemorySample& sample : memory_timeline(index_, track_)) {
      std::string args;
      for (std::size_t i = 0; i < sample.bytes.size(); ++i) {
        if (first || sample.bytes[i] != before[i]) {
          args += fmt::format(R"({}"{}":{})",
                              args.empty() ? "" : ",",
                              name_of(static_cast<Category>(i)),
                              sample.bytes[i]);
        }
      }
      sink_.event(
          fmt::format(R"({{"ph":"C","pid":{},"tid":1,"ts":{},"name":"memory","args":{{{}}}}})",
                      pid_of(rank_),
                      stamp(sample.time),
                      args));
      before = sample.bytes;
      first = false;
    }
  }

  const TraceIndex index_;
  const Plan& plan_;
  const TraceStep& step_;
  Nanoseconds zero_;
  const std::vector<int>& ranks_;
  EventSink& sink_;
  int rank_ = 0;
  int track_ = 0;
};

void write_names(EventSink& sink, int rank, const ExportLanes& used) {
  const int pid = pid_of(rank);
  const auto metadata = [&](int tid, std::string_view kind, std::string_view args) {
    sink.event(fmt::format(
        R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", pid, tid, kind, args));
  };
  metadata(1, "process_name", fmt::format(R"("name":"rank {}")", rank));
  metadata(1, "process_sort_index", fmt::format(R"("sort_index":{})", rank));
  metadata(kStepThread, "thread_name", R"("name":"step")");
  metadata(kStepThread, "thread_sort_index", R"("sort_index":0)");
  for (int lane = 0; lane < kExportLanes; ++lane) {
    if (used[static_cast<std::size_t>(lane)]) {
      const int tid = lane + 1;
      metadata(tid, "thread_name", fmt::format(R"("name":"{}")", export_lane_name(lane)));
      metadata(tid, "thread_sort_index", fmt::format(R"("sort_index":{})", tid));
    }
  }
}

}  // namespace

void write_chrome_trace(const TextSink& text,
                        const Plan& plan,
                        const Trace& trace,
                        const ChromeTraceOptions& options) {
  const std::vector<int> ranks = export_ranks(plan, trace, options.ranks);
  EventSink sink(text);
  sink.begin("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
  for (const int rank : ranks) {
    write_names(sink, rank, export_lanes(plan, trace, rank));
  }
  for (const TraceStep& step : trace.steps) {
    StepWriter writer(plan, step, trace.steps.front().begin, ranks, sink);
    for (const int rank : ranks) {
      writer.write_rank(rank, options);
    }
  }
  sink.end("\n]}\n");
}

}  // namespace lockstep
