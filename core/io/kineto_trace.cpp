#include "core/io/kineto_trace.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/io/event_sink.h"
#include "core/io/export_spans.h"
#include "core/io/field_writer.h"
#include "core/io/gzip_writer.h"
#include "core/plan_text.h"
#include "core/trace_index.h"
#include "core/traffic.h"

namespace lockstep {
namespace {

constexpr int kFirstProcess = 100'000;  // Kineto's devices have process numbers from 0
constexpr int kFirstStream = 7;         // CUDA's first stream in PyTorch's traces
constexpr int kDeviceSortIndex = 5'000'000;
/// PyTorch prints at most 30 numbers of a list (c10d ParamCommsUtils).
constexpr std::size_t kListedRanks = 30;

int stream_of(int lane) {
  return kFirstStream + lane;
}

/// c10's names.
std::string_view scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kFp64:
      return "Double";
    case DType::kFp32:
      return "Float";
    case DType::kBf16:
      return "BFloat16";
    case DType::kFp16:
      return "Half";
    case DType::kInt64:
      return "Long";
    case DType::kInt32:
      return "Int";
    case DType::kUint8:
      return "Byte";
  }
  return "?";
}

struct CollectiveNames {
  std::string_view record;  ///< Collective name
  std::string_view kernel;
};

CollectiveNames names_of(const Operation& op) {
  if (op.kind == OperationKind::kSend) {
    return {"send", "ncclKernel_SendRecv"};
  }
  if (op.kind == OperationKind::kRecv) {
    return {"recv", "ncclKernel_SendRecv"};
  }
  switch (op.collective) {
    case Collective::kAllReduce:
      return {"allreduce", "ncclKernel_AllReduce"};
    case Collective::kAllGather:
      return {"_allgather_base", "ncclKernel_AllGather"};
    case Collective::kReduceScatter:
      return {"_reduce_scatter_base", "ncclKernel_ReduceScatter"};
    case Collective::kBroadcast:
      return {"broadcast", "ncclKernel_Broadcast"};
    case Collective::kReduce:
      return {"reduce", "ncclKernel_Reduce"};
    case Collective::kGather:
      return {"gather", "ncclKernel_SendRecv_Gather"};
    case Collective::kScatter:
      return {"scatter", "ncclKernel_SendRecv_Scatter"};
    case Collective::kAllToAll:
      return {"all_to_all", "ncclKernel_SendRecv_AllToAll"};
    case Collective::kBarrier:
      return {"barrier", "ncclKernel_AllReduce_Barrier"};
  }
  return {"?", "ncclKernel"};
}

std::string list_text(const std::vector<int>& numbers) {
  const bool cut = numbers.size() > kListedRanks;
  std::string text = "[";
  for (std::size_t i = 0; i < (cut ? kListedRanks - 1 : numbers.size()); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", numbers[i]);
  }
  return text + (cut ? fmt::format(", ..., {}]", numbers.back()) : "]");
}

class RankWriter {
 public:
  RankWriter(const Plan& plan,
             const Trace& trace,
             int rank,
             const KinetoOptions& options,
             const TextSink& text)
      : plan_(plan),
        trace_(trace),
        rank_(rank),
        options_(options),
        host_(kFirstProcess + rank),
        device_(rank % std::max(1, options.devices_per_node)),
        sink_(text) {}

  void run() {
    sink_.begin(head());
    write_names();
    for (const TraceStep& step : trace_.steps) {
      write_step(step);
    }
    sink_.end(fmt::format("\n],\n\"traceName\": \"{}\"\n}}\n", kineto_file_name(rank_)));
  }

 private:
  std::string head() const {
    std::string groups;
    for (std::size_t i = 0; i < plan_.communicators.size(); ++i) {
      const Communicator& it = plan_.communicators[i];
      const std::vector<int> ranks = members(plan_, it, rank_);
      groups += fmt::format(
          R"({}{{"pg_name": "{}", "pg_desc": "{}", "backend_config": "cuda:nccl", "pg_size": {}, "ranks": {}}})",
          i == 0 ? "" : ", ",
          i,
          group_text(plan_.mesh, it),
          ranks.size(),
          fmt::format("[{}]", fmt::join(ranks, ", ")));
    }
    return fmt::format(R"({{
"schemaVersion": 1,
"deviceProperties": [{{"id": {}, "name": {}, "totalGlobalMem": {}}}],
"distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}, "pg_count": {}, "pg_config": [{}]}},
"displayTimeUnit": "ms",
"baseTimeNanoseconds": 0,
"traceEvents": [)",
                       device_,
                       json_string(options_.device),
                       options_.device_bytes,
                       rank_,
                       plan_.mesh.world_size(),
                       plan_.communicators.size(),
                       groups);
  }

  void metadata(int pid, int tid, std::string_view kind, const std::string& args) {
    sink_.event(fmt::format(R"({{"ph": "M", "pid": {}, "tid": {}, "name": "{}", "args": {{{}}}}})",
                            pid,
                            tid,
                            kind,
                            args));
  }

  void write_names() {
    process(host_, "CPU", host_);
    metadata(
        host_, host_, "thread_name", fmt::format(R"~("name": "thread {} (lockstep)")~", host_));
    metadata(host_,
             host_ + 1,
             "thread_name",
             fmt::format(R"~("name": "thread {} (host work)")~", host_ + 1));
    process(device_, fmt::format("GPU {}", device_), device_ + kDeviceSortIndex);
    const ExportLanes used = export_lanes(plan_, trace_, rank_);
    for (int lane = 0; lane < kExportLanes; ++lane) {
      if (used[static_cast<std::size_t>(lane)] && lane != static_cast<int>(Stream::kHost)) {
        metadata(device_,
                 stream_of(lane),
                 "thread_name",
                 fmt::format(R"("name": "stream {} {}")", stream_of(lane), export_lane_name(lane)));
        metadata(device_,
                 stream_of(lane),
                 "thread_sort_index",
                 fmt::format(R"("sort_index": {})", stream_of(lane)));
      }
    }
  }

  void process(int pid, const std::string& label, int sort_index) {
    const int tid = pid == host_ ? host_ : stream_of(0);
    metadata(pid, tid, "process_name", R"("name": "lockstep")");
    metadata(pid, tid, "process_labels", fmt::format(R"("labels": "{}")", label));
    metadata(pid, tid, "process_sort_index", fmt::format(R"("sort_index": {})", sort_index));
  }

  struct Slice {
    int pid = 0;
    int tid = 0;
    Nanoseconds begin = 0;
    Nanoseconds end = 0;
  };

  void slice(const Slice& at,
             std::string_view category,
             std::string_view name,
             const std::string& args) {
    if (at.end > at.begin) {
      sink_.event(fmt::format(
          R"({{"ph": "X", "cat": "{}", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}})",
          category,
          json_string(name),
          at.pid,
          at.tid,
          microseconds_text(at.begin),
          microseconds_text(at.end - at.begin),
          args));
    }
  }

  void write_step(const TraceStep& step) {
    const TraceIndex index(plan_, step);
    const TrackOperation track{step.track_of_rank[static_cast<std::size_t>(rank_)], 0};
    slice({host_, host_, step.begin, step.end},
          "user_annotation",
          fmt::format("ProfilerStep#{}", step.iteration),
          "");
    Nanoseconds free_from = step.begin;  // of the host
    for (const ExportSpan& span : export_spans(index, rank_)) {
      const Operation& op = index.operation({track.track, span.operation});
      if (span.lane == static_cast<int>(Stream::kHost)) {
        slice({host_, host_ + 1, span.started, span.ended},
              "cpu_op",
              name_of_span(op),
              about(span, op));
      } else {
        write_device(span, op, {host_, host_, free_from, std::max(free_from, span.issued)});
      }
      free_from = std::max(free_from, span.issued);
      if (op.has(kHostSync)) {
        free_from = std::max(free_from, span.ended);
      }
    }
  }

  std::string name_of_span(const Operation& op) const {
    return export_name(plan_, plan_.class_of_rank(rank_), op);
  }

  std::string about(const ExportSpan& span, const Operation& op) const {
    std::string text =
        fmt::format(R"("operation": {}, "phase": "{}")", span.operation, name_of(op.phase));
    return op.microbatch < 0 ? text : text + fmt::format(R"(, "micro-batch": {})", op.microbatch);
  }

  void write_device(const ExportSpan& span, const Operation& op, const Slice& launch) {
    const int stream = stream_of(span.lane);
    const std::int64_t correlation = ++correlation_;
    const std::string ids = fmt::format(R"("External id": {0}, "correlation": {0})", correlation);
    const bool message = is_communication(op);
    const Slice on_device{device_, stream, message ? span.arrived : span.started, span.ended};
    std::string args = fmt::format(R"({}, "device": {}, "context": 1, "stream": {}, {})",
                                   ids,
                                   device_,
                                   stream,
                                   about(span, op));
    if (message) {
      const std::string record = collective_args(op);
      slice(launch, "cpu_op", "record_param_comms", record);
      slice(on_device,
            "gpu_user_annotation",
            fmt::format("nccl:{}", kind_text(op)),
            fmt::format(R"("External id": {})", correlation));
      args += ", " + record;
    }
    slice(launch, "cuda_runtime", launch_name(op), ids);
    slice(on_device, category_of(op), device_name(op), args);
    if (launch.end > launch.begin && on_device.end > on_device.begin) {
      flow('s', launch, correlation);
      flow('f', on_device, correlation);
    }
  }

  void flow(char phase, const Slice& at, std::int64_t correlation) {
    sink_.event(fmt::format(
        R"({{"ph": "{}", "id": {}, "pid": {}, "tid": {}, "ts": {}, "cat": "ac2g", "name": "ac2g"{}}})",
        phase,
        correlation,
        at.pid,
        at.tid,
        microseconds_text(at.begin),
        phase == 'f' ? R"(, "bp": "e")" : ""));
  }

  static std::string_view launch_name(const Operation& op) {
    return op.kind == OperationKind::kCopy ? "cudaMemcpyAsync" : "cudaLaunchKernel";
  }

  static std::string_view category_of(const Operation& op) {
    return op.kind == OperationKind::kCopy ? "gpu_memcpy" : "kernel";
  }

  std::string device_name(const Operation& op) const {
    if (is_communication(op)) {
      return fmt::format("{}({})", names_of(op).kernel, scalar_type(op.dtype));
    }
    return op.kind == OperationKind::kCopy ? "Memcpy (" + name_of_span(op) + ")" : name_of_span(op);
  }

  /// Keys of PyTorch's ParamCommsUtils and libkineto.
  std::string collective_args(const Operation& op) {
    const Communicator& group = plan_.communicators[op.communicator];
    const std::vector<int> ranks = members(plan_, group, rank_);
    const auto size = static_cast<std::int64_t>(ranks.size());
    const bool gathers =
        op.collective == Collective::kAllGather || op.collective == Collective::kGather;
    const bool scatters =
        op.collective == Collective::kReduceScatter || op.collective == Collective::kScatter;
    const bool collective = op.kind == OperationKind::kCollective;
    std::string text = fmt::format(
        R"("Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "Group size": {}, "dtype": "{}", "In split size": "[]", "Out split size": "[]", "Process Group Name": "{}", "Process Group Description": "{}", "Process Group Ranks": "{}", "Seq": {})",
        names_of(op).record,
        op.elements * (collective && scatters ? size : 1),
        op.elements * (collective && gathers ? size : 1),
        size,
        scalar_type(op.dtype),
        op.communicator,
        group_text(plan_.mesh, group),
        list_text(ranks),
        sequence_[op.communicator]++);
    if (!collective) {
      const int peer = plan_.mesh.with(rank_, Axis::kPipeline, op.peer);
      const bool sends = op.kind == OperationKind::kSend;
      text += fmt::format(
          R"(, "Src Rank": {}, "Dst Rank": {})", sends ? rank_ : peer, sends ? peer : rank_);
    }
    return text;
  }

  const Plan& plan_;
  const Trace& trace_;
  int rank_;
  const KinetoOptions& options_;
  int host_;    ///< process number of the host; its main thread's too
  int device_;  ///< process number of the device
  EventSink sink_;
  std::int64_t correlation_ = 0;
  std::map<int, std::int64_t> sequence_;  ///< by communicator
};

}  // namespace

void write_kineto_trace(const TextSink& text,
                        const Plan& plan,
                        const Trace& trace,
                        int rank,
                        const KinetoOptions& options) {
  export_ranks(plan, trace, {rank});
  RankWriter(plan, trace, rank, options, text).run();
}

std::string kineto_file_name(int rank) {
  return fmt::format("rank-{}.pt.trace.json.gz", rank);
}

int write_kineto_folder(const std::filesystem::path& folder,
                        const Plan& plan,
                        const Trace& trace,
                        const KinetoOptions& options) {
  constexpr std::string_view kComponent = "trace export";
  const std::vector<int> ranks = export_ranks(plan, trace, options.ranks);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const int rank : ranks) {
    check_stop(options.stop_check);
    WholeFile file(folder / kineto_file_name(rank), kComponent);
    GzipWriter gzip([&](std::string_view packed) { file.write(packed); });
    RankWriter(plan, trace, rank, options, [&](std::string_view text) { gzip.write(text); }).run();
    gzip.finish();
    file.keep();
  }
  return static_cast<int>(ranks.size());
}

}  // namespace lockstep
