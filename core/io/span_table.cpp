#include "core/io/span_table.h"

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "core/io/event_sink.h"
#include "core/io/export_spans.h"
#include "core/io/field_writer.h"
#include "core/plan_text.h"
#include "core/trace_index.h"
#include "core/traffic.h"

namespace lockstep {
namespace {

constexpr std::size_t kColumns = 16;
constexpr std::array<std::string_view, kColumns> kTitles = {"step",
                                                            "iteration",
                                                            "rank",
                                                            "lane",
                                                            "operation",
                                                            "name",
                                                            "kind",
                                                            "phase",
                                                            "microbatch",
                                                            "group",
                                                            "bytes",
                                                            "state",
                                                            "issued_ns",
                                                            "arrived_ns",
                                                            "started_ns",
                                                            "ended_ns"};

struct Cell {
  std::string text;
  bool number = false;
};
using Row = std::array<Cell, kColumns>;

std::string_view name_of(SpanState state) {
  switch (state) {
    case SpanState::kDone:
      return "done";
    case SpanState::kSkipped:
      return "skipped";
    case SpanState::kRunning:
      return "running";
    case SpanState::kArrived:
      return "arrived";
    case SpanState::kIssued:
      return "issued";
    case SpanState::kPlanned:
      return "planned";
  }
  return "?";
}

Cell whole(std::int64_t value) {
  return {std::to_string(value), true};
}

class Table {
 public:
  Table(const Plan& plan, const Trace& trace, const std::vector<int>& ranks)
      : plan_(plan), trace_(trace), ranks_(export_ranks(plan, trace, ranks)) {}

  void visit(const std::function<void(const Row&)>& take) const {
    for (std::size_t step = 0; step < trace_.steps.size(); ++step) {
      const TraceIndex index(plan_, trace_.steps[step]);
      for (const int rank : ranks_) {
        const int track = index.step().track_of_rank[static_cast<std::size_t>(rank)];
        for (const Span& span : index.track(track).spans) {
          Row row = row_of(index, rank, {track, span.operation});
          row[0] = whole(static_cast<std::int64_t>(step) + 1);
          take(row);
        }
      }
    }
  }

 private:
  Row row_of(const TraceIndex& index, int rank, const TrackOperation& at) const {
    const Operation& op = index.operation(at);
    const SpanTimes times = index.times(at);
    const int lane = export_lane(op, plan_.mesh.coordinate(rank, Axis::kPipeline));
    Row row;
    row[1] = whole(index.step().iteration);
    row[2] = whole(rank);
    row[3] = {export_lane_name(lane)};
    row[4] = whole(at.operation);
    row[5] = {export_name(plan_, plan_.class_of_rank(rank), op)};
    row[6] = {kind_text(op)};
    row[7] = {std::string(lockstep::name_of(op.phase))};
    if (op.microbatch >= 0) {
      row[8] = whole(op.microbatch);
    }
    if (is_communication(op)) {
      const Communicator& group = index.communicator(op);
      row[9] = {group_text(plan_.mesh, group)};
      row[10] = whole(tensor_bytes(op, group_size(plan_.mesh, group)));
    }
    row[11] = {std::string(name_of(index.span(at).state))};
    row[12] = whole(times.issued);
    row[13] = whole(times.arrived);
    row[14] = whole(times.started);
    row[15] = whole(times.ended);
    return row;
  }

  const Plan& plan_;
  const Trace& trace_;
  std::vector<int> ranks_;
};

/// RFC 4180: quotes around what holds a comma or a quote, which is doubled.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace

void write_span_csv(const TextSink& text,
                    const Plan& plan,
                    const Trace& trace,
                    const std::vector<int>& ranks) {
  const Table table(plan, trace, ranks);
  std::string buffer = fmt::format("{}\n", fmt::join(kTitles, ","));
  table.visit([&](const Row& row) {
    for (std::size_t i = 0; i < kColumns; ++i) {
      buffer += (i == 0 ? "" : ",") + csv_cell(row[i].text);
    }
    buffer += '\n';
    if (buffer.size() >= std::size_t{1} << 16) {
      text(buffer);
      buffer.clear();
    }
  });
  text(buffer);
}

void write_span_json(const TextSink& text,
                     const Plan& plan,
                     const Trace& trace,
                     const std::vector<int>& ranks) {
  const Table table(plan, trace, ranks);
  EventSink sink(text);
  sink.begin(fmt::format("{{\"columns\": [\"{}\"],\n\"rows\": [", fmt::join(kTitles, "\", \"")));
  table.visit([&](const Row& row) {
    std::string line = "[";
    for (std::size_t i = 0; i < kColumns; ++i) {
      const Cell& cell = row[i];
      line += i == 0 ? "" : ", ";
      line += cell.text.empty() ? "null" : cell.number ? cell.text : json_string(cell.text);
    }
    sink.event(line + "]");
  });
  sink.end("\n]}\n");
}

}  // namespace lockstep
