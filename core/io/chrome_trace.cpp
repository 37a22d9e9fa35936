#include "core/io/chrome_trace.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/field_writer.h"
#include "core/memory_timeline.h"
#include "core/names.h"
#include "core/plan_text.h"
#include "core/trace_index.h"
#include "core/traffic.h"

namespace lockstep {
namespace {

/// Streams, then recvs from earlier and from later stages: they wait beside one another and beside
/// what the rank sends.
constexpr int kLanes = kStreamCount + 2;
constexpr int kStepThread = kLanes + 1;
constexpr std::size_t kFlushAt = 1U << 16U;
constexpr std::size_t kLongestName = 160;

/// The lane of an operation of a rank of pipeline stage `stage`.
int lane_of(const Operation& op, int stage) {
  return op.kind != OperationKind::kRecv ? static_cast<int>(op.stream)
         : op.peer < stage               ? kStreamCount
                                         : kStreamCount + 1;
}

std::string lane_name(int lane) {
  return lane < kStreamCount    ? std::string(name_of(static_cast<Stream>(lane)))
         : lane == kStreamCount ? "recv from earlier stages"
                                : "recv from later stages";
}

int pid_of(int rank) {
  return rank + 1;
}

std::string name_json(std::string_view name) {
  return json_string(printable(name, kLongestName));
}

/// Events one after the other, commas between.
class EventSink {
 public:
  explicit EventSink(std::FILE* file) : file_(file) {}

  void begin() { buffer_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":["; }
  void event(std::string_view json) {
    buffer_ += first_ ? "\n" : ",\n";
    buffer_ += json;
    first_ = false;
    if (buffer_.size() >= kFlushAt) {
      flush();
    }
  }
  void end() {
    buffer_ += "\n]}\n";
    flush();
    if (std::fflush(file_) != 0) {
      refuse();
    }
  }

 private:
  void flush() {
    if (std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size()) {
      refuse();
    }
    buffer_.clear();
  }
  [[noreturn]] void refuse() const {
    throw NotSupportedError("chrome trace",
                            "cannot be written: " + std::generic_category().message(errno));
  }

  std::FILE* file_;
  std::string buffer_;
  bool first_ = true;
};

/// Nanoseconds as microseconds: "12.345".
std::string microseconds(Nanoseconds time) {
  return time % 1000 == 0 ? std::to_string(time / 1000)
                          : fmt::format("{}.{:03}", time / 1000, time % 1000);
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
    cursor_.fill(step_.begin);
    slice(kStepThread,
          fmt::format("{} {}", section_text(plan_, step_.section), step_.iteration),
          "step",
          step_.begin,
          step_.end,
          "");
    for (const std::uint32_t operation : index_.program(track_).operations) {
      write_operation(operation, options.flows);
    }
    if (options.memory) {
      write_memory();
    }
  }

 private:
  std::string stamp(Nanoseconds time) const { return microseconds(time - zero_); }

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
        microseconds(end - begin),
        name_json(name),
        category,
        args));
  }

  /// What it does, and where in the model; micro-batch and phase are arguments, so that viewers can
  /// add up slices of one name.
  std::string name_of_operation(const Operation& op) const {
    const std::string text = operation_text(plan_, index_.track(track_).class_index, op);
    std::size_t end = text.find(", ");
    if (op.module != kNoModule && end != std::string::npos) {
      end = text.find(", ", end + 2);
    }
    return text.substr(0, end);
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
      text += fmt::format(R"(,"bytes":{},"group size":{},"waited us":{})",
                          tensor_bytes(op, members),
                          members,
                          microseconds(std::max<Nanoseconds>(0, times.started - times.arrived)));
    }
    if (op.has(kControl)) {
      text += R"(,"control":true)";
    }
    return text;
  }

  void write_operation(std::uint32_t operation, bool flows) {
    const Operation& op = index_.operation({track_, operation});
    const SpanTimes times = index_.times({track_, operation});
    const int lane = lane_of(op, plan_.mesh.coordinate(rank_, Axis::kPipeline));
    const int tid = lane + 1;
    // Slices of a thread may not overlap, whatever a recorded clock says.
    Nanoseconds& cursor = cursor_[static_cast<std::size_t>(lane)];
    const Nanoseconds arrived = std::clamp(times.arrived, cursor, step_.end);
    const Nanoseconds started = std::clamp(times.started, arrived, step_.end);
    const Nanoseconds ended = std::clamp(times.ended, started, step_.end);
    const bool message = is_communication(op);
    const std::string name = name_of_operation(op);
    if (message) {
      slice(tid, "wait: " + name, "waiting", arrived, started, "");
    }
    const char* category = message                           ? "communication"
                           : op.kind == OperationKind::kHost ? "host"
                                                             : "compute";
    slice(tid, name, category, started, ended, arguments(operation, op, times));
    cursor = ended;
    if (flows && message && op.kind != OperationKind::kCollective) {
      write_flow(operation, op, started);
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
        lane_of(op, plan_.mesh.coordinate(rank_, Axis::kPipeline)) + 1,
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
  std::array<Nanoseconds, kLanes> cursor_{};
};

void write_names(EventSink& sink, int rank, const std::array<bool, kLanes>& used) {
  const int pid = pid_of(rank);
  const auto metadata = [&](int tid, std::string_view kind, std::string_view args) {
    sink.event(fmt::format(
        R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", pid, tid, kind, args));
  };
  metadata(1, "process_name", fmt::format(R"("name":"rank {}")", rank));
  metadata(1, "process_sort_index", fmt::format(R"("sort_index":{})", rank));
  metadata(kStepThread, "thread_name", R"("name":"step")");
  metadata(kStepThread, "thread_sort_index", R"("sort_index":0)");
  for (int lane = 0; lane < kLanes; ++lane) {
    if (used[static_cast<std::size_t>(lane)]) {
      const int tid = lane + 1;
      metadata(tid, "thread_name", fmt::format(R"("name":"{}")", lane_name(lane)));
      metadata(tid, "thread_sort_index", fmt::format(R"("sort_index":{})", tid));
    }
  }
}

std::array<bool, kLanes> lanes_of(const Plan& plan, const Trace& trace, int rank) {
  std::array<bool, kLanes> used{};
  const int stage = plan.mesh.coordinate(rank, Axis::kPipeline);
  for (const TraceStep& step : trace.steps) {
    const Section& section = plan.sections[static_cast<std::size_t>(step.section)];
    const auto index = static_cast<std::size_t>(plan.class_of_rank(rank));
    for (const Operation& op : section.programs[index].operations) {
      used[static_cast<std::size_t>(lane_of(op, stage))] = true;
    }
  }
  return used;
}

std::vector<int> chosen_ranks(const Plan& plan, const Trace& trace, std::vector<int> ranks) {
  if (ranks.empty()) {
    for (const TraceTrack& track : trace.steps.front().tracks) {
      ranks.push_back(track.ranks.front());
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  for (const int rank : ranks) {
    if (rank < 0 || rank >= plan.mesh.world_size()) {
      throw UsageError("chrome trace",
                       fmt::format("rank {}: there are {}, from 0", rank, plan.mesh.world_size()));
    }
  }
  return ranks;
}

}  // namespace

void write_chrome_trace(std::FILE* file,
                        const Plan& plan,
                        const Trace& trace,
                        const ChromeTraceOptions& options) {
  if (trace.steps.empty()) {
    throw BadInputError("trace", "it holds no step");
  }
  for (const TraceStep& step : trace.steps) {
    check_trace(plan, step);
  }
  const std::vector<int> ranks = chosen_ranks(plan, trace, options.ranks);
  EventSink sink(file);
  sink.begin();
  for (const int rank : ranks) {
    write_names(sink, rank, lanes_of(plan, trace, rank));
  }
  for (const TraceStep& step : trace.steps) {
    StepWriter writer(plan, step, trace.steps.front().begin, ranks, sink);
    for (const int rank : ranks) {
      writer.write_rank(rank, options);
    }
  }
  sink.end();
}

}  // namespace lockstep
