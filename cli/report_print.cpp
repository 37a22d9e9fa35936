#include "cli/report_print.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "cli/scenario_text.h"
#include "core/plan_text.h"
#include "core/report_text.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kShownRanks = 16;
constexpr std::size_t kShownWaits = 5;

double percent(Nanoseconds part, Nanoseconds whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string group_title(const ReportGroup& group) {
  return group.name + (group.control ? " control" : "");
}

double milliseconds(Nanoseconds time) {
  return static_cast<double>(time) * 1e-6;
}

std::string head_text(const Report& report) {
  std::string text =
      fmt::format("{} step {:.3f} ms",
                  report.source == TraceSource::kSimulated ? "simulated" : "measured",
                  milliseconds(report.step_time));
  if (report.tokens > 0) {
    text += fmt::format(", {} tokens/s ({} per device)",
                        grouped(std::llround(report.tokens_per_s())),
                        grouped(std::llround(report.tokens_per_s_per_device())));
  }
  text += fmt::format("\n{}FLOP/s per device", si_text(report.flops_per_device()));
  if (report.peak_flops > 0) {
    text += fmt::format(", MFU {:.1f} %, HFU {:.1f} % of {}FLOP/s",
                        100 * report.mfu(),
                        100 * report.hfu(),
                        si_text(report.peak_flops));
  }
  return text + "\n";
}

/// Every figure of the head with its formula and values.
std::string head_formulas(const Report& report) {
  const double step = report.step_time_s();
  std::string text;
  text += fmt::format(
      "  tokens/s  = tokens per step / step time = {} / {:.6f} s\n", grouped(report.tokens), step);
  text +=
      fmt::format("  FLOP/s    = model FLOPs / (step time x devices) = {}FLOP / ({:.6f} s x {})\n",
                  si_text(report.model_flops),
                  step,
                  report.devices);
  text += fmt::format(
      "              model FLOPs: matrix products of forward and backward, attention in full "
      "(PaLM,\n"
      "              arXiv:2204.02311, appendix B)\n");
  text += fmt::format("  MFU       = {}FLOP / ({:.6f} s x {} x {}FLOP/s)\n",
                      si_text(report.model_flops),
                      step,
                      report.devices,
                      si_text(report.peak_flops));
  text += fmt::format("  HFU       = the same with what is computed twice: {}FLOP\n",
                      si_text(report.hardware_flops));
  return text;
}

/// Columns that some rank has.
struct Column {
  std::string title;
  std::vector<Nanoseconds> values;  ///< by rank report
};

std::vector<Column> time_columns(const Report& report) {
  std::vector<Column> columns;
  const auto add = [&](const std::string& title, auto&& value) {
    Column column{title, {}};
    for (const RankReport& rank : report.ranks) {
      column.values.push_back(value(rank.time));
    }
    // A twentieth of a percent is shown as zero.
    if (std::any_of(column.values.begin(), column.values.end(), [&](auto time) {
          return time * 2000 > report.step_time;
        })) {
      columns.push_back(std::move(column));
    }
  };
  add("compute", [](const TimeSplit& time) { return time.compute; });
  add("recompute", [](const TimeSplit& time) { return time.recompute; });
  for (std::size_t group = 0; group < report.groups.size(); ++group) {
    const std::string name = group_title(report.groups[group]);
    add("exposed " + name, [&](const TimeSplit& time) { return time.exposed[group]; });
    add("waiting " + name, [&](const TimeSplit& time) { return time.waiting[group]; });
  }
  add("bubble", [](const TimeSplit& time) { return time.bubble; });
  add("host", [](const TimeSplit& time) { return time.host; });
  add("idle", [](const TimeSplit& time) { return time.idle; });
  return columns;
}

std::string split_text(const Report& report) {
  const std::vector<Column> columns = time_columns(report);
  std::vector<TextColumn> titles{{"rank", Align::kRight}, {"ranks", Align::kRight}};
  for (const Column& column : columns) {
    titles.push_back({column.title, Align::kRight});
  }
  TextTable table(titles);
  const std::size_t shown = std::min(report.ranks.size(), kShownRanks);
  for (std::size_t i = 0; i < shown; ++i) {
    std::vector<std::string> cells{std::to_string(report.ranks[i].rank),
                                   std::to_string(report.ranks[i].count)};
    for (const Column& column : columns) {
      cells.push_back(fmt::format("{:.1f} %", percent(column.values[i], report.step_time)));
    }
    table.add(std::move(cells));
  }
  std::string text = "where the time of a rank goes\n" + table.text("  ");
  if (shown < report.ranks.size()) {
    text +=
        fmt::format("  and {} more kinds of rank (--json, --csv)\n", report.ranks.size() - shown);
  }
  return text;
}

std::string traffic_text(const Report& report) {
  TextTable table({{"group"},
                   {"kind"},
                   {"type"},
                   {"messages", Align::kRight},
                   {"tensor bytes", Align::kRight},
                   {"sent", Align::kRight},
                   {""}});
  for (const ReportTraffic& it : report.traffic) {
    table.add({it.group,
               it.kind,
               it.dtype,
               fmt::format("{:.4g}", it.messages),
               bytes_text(std::llround(it.tensor_bytes)),
               bytes_text(std::llround(it.sent_bytes)),
               it.control ? "control" : ""});
  }
  return report.traffic.empty() ? "no rank sends anything\n"
                                : "what a rank sends, mean over ranks\n" + table.text("  ");
}

std::string memory_line(const MemoryReport& memory) {
  const RankMemory& worst = memory.worst();
  return fmt::format("memory: peak {} of {} on rank {} ({}), at most {}; {}\n",
                     bytes_text(worst.peak_bytes()),
                     bytes_text(memory.device_bytes),
                     worst.rank,
                     worst.peak_text,
                     bytes_text(worst.upper_bound_bytes()),
                     memory.fits() ? "fits" : "does NOT fit");
}

std::string path_text(const Report& report) {
  if (!report.stalls.empty()) {
    return "";  // nothing led to an end
  }
  std::map<std::string, Nanoseconds> causes;
  for (const PathSegment& segment : report.path) {
    causes[std::string(name_of(segment.cause))] += segment.end - segment.begin;
  }
  std::string text = "critical path:";
  const char* separator = " ";
  for (const auto& [cause, time] : causes) {
    text += fmt::format("{}{} {:.1f} %", separator, cause, percent(time, report.step_time));
    separator = ", ";
  }
  return text + "\n";
}

std::string waits_text(const Report& report) {
  std::string text;
  for (std::size_t i = 0; i < std::min(report.waits.size(), kShownWaits); ++i) {
    const RankWait& wait = report.waits[i];
    if (wait.time * 1000 < report.step_time) {
      break;  // less than a thousandth of the step
    }
    text += fmt::format("  rank {} lost {:.3f} ms waiting {} times for rank {} ({})\n",
                        wait.rank,
                        milliseconds(wait.time),
                        wait.times,
                        wait.for_rank,
                        report.groups[static_cast<std::size_t>(wait.group)].name);
  }
  return text.empty() ? "" : "who waits for whom\n" + text;
}

std::string stalls_text(const ReportView& view) {
  std::string text;
  for (const Stall& stall : view.report.stalls) {
    const int index = view.plan.class_of_rank(stall.rank);
    const Program& program = view.plan.sections[static_cast<std::size_t>(view.report.section)]
                                 .programs[static_cast<std::size_t>(index)];
    const std::string at = operation_text(view.plan, index, program.operations[stall.operation]);
    if (stall.missing == std::vector<std::int32_t>{stall.rank}) {
      text += fmt::format(
          "  rank {} died at {:.3f} ms, at {}\n", stall.rank, milliseconds(stall.since), at);
      continue;
    }
    text += fmt::format("  rank {} waits since {:.3f} ms at {} for rank {}\n",
                        stall.rank,
                        milliseconds(stall.since),
                        at,
                        fmt::join(stall.missing, ", "));
  }
  return text.empty() ? "" : "the step never ended\n" + text;
}

// ---- JSON ---------------------------------------------------------------------------------------

double seconds(Nanoseconds time) {
  return static_cast<double>(time) * 1e-9;
}

/// One object of seconds by group; `mean` is the report's figure of a group.
void write_groups(JsonWriter& json,
                  const char* key,
                  const Report& report,
                  double (Report::*mean)(int) const) {
  json.begin_object(key);
  for (std::size_t group = 0; group < report.groups.size(); ++group) {
    json.field(group_title(report.groups[group]).c_str(), (report.*mean)(static_cast<int>(group)));
  }
  json.end_object();
}

void write_sent(JsonWriter& json, const Report& report) {
  std::map<std::string, std::map<std::string, double>> sent;
  for (const ReportTraffic& it : report.traffic) {
    sent[it.group + (it.control ? " control" : "")][it.kind] += it.sent_bytes;
  }
  json.begin_object("sent_bytes_per_rank");
  for (const auto& [group, kinds] : sent) {
    json.begin_object(group.c_str());
    for (const auto& [kind, bytes] : kinds) {
      json.field(kind.c_str(), bytes);
    }
    json.end_object();
  }
  json.end_object();
}

void write_time_split(JsonWriter& json, const Report& report) {
  json.begin_array("time_split");
  for (const RankReport& rank : report.ranks) {
    const TimeSplit& time = rank.time;
    json.begin_object();
    json.field("rank", rank.rank);
    json.field("count", rank.count);
    json.field("compute_s", seconds(time.compute));
    json.field("recompute_s", seconds(time.recompute));
    json.field("exposed_s", seconds(time.exposed_total()));
    json.field("waiting_s", seconds(time.waiting_total()));
    json.field("bubble_s", seconds(time.bubble));
    json.field("host_s", seconds(time.host));
    json.field("idle_s", seconds(time.idle));
    json.field("other_s", seconds(time.waiting_total() + time.host + time.idle));
    json.end_object();
  }
  json.end_array();
}

void write_stalls(JsonWriter& json, const Report& report) {
  json.begin_array("stalls");
  for (const Stall& stall : report.stalls) {
    json.begin_object();
    json.field("rank", stall.rank);
    json.field("operation", static_cast<std::int64_t>(stall.operation));
    json.field("since_s", seconds(stall.since));
    json.field("missing", std::vector<int>(stall.missing.begin(), stall.missing.end()));
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string report_text(const ReportView& view) {
  const Report& report = view.report;
  std::string text = scenario_line(view.scenario) + "\n" + head_text(report);
  if (view.explain) {
    text += head_formulas(report);
  }
  text += "\n" + stalls_text(view) + split_text(report) + "\n" + traffic_text(report) + "\n";
  if (view.memory != nullptr) {
    text += memory_line(*view.memory);
  }
  return text + path_text(report) + waits_text(report);
}

void write_report(JsonWriter& json, const ReportView& view) {
  const Report& report = view.report;
  json.field("schema_version", 1);
  json.field("source", report.source == TraceSource::kSimulated ? "simulated" : "measured");
  json.field("devices", report.devices);
  json.field("step_time_s", report.step_time_s());
  json.field("tokens_per_s", report.tokens_per_s());
  json.field("tokens_per_s_per_device", report.tokens_per_s_per_device());
  json.field("tflops_per_device", report.flops_per_device() * 1e-12);
  json.field("mfu", report.mfu());
  json.field("hfu", report.hfu());
  json.field("bubble_fraction", report.bubble_fraction());
  json.field("exposed_fraction", report.exposed_fraction());
  write_groups(json, "exposed_s", report, &Report::mean_exposed_s);
  write_groups(json, "waiting_s", report, &Report::mean_waiting_s);
  write_sent(json, report);
  write_time_split(json, report);
  write_stalls(json, report);
  json.field("operations", report.operations);
  if (view.memory != nullptr) {
    json.begin_object("memory");
    json.field("schema_version", 1);
    write_memory(json, {view.scenario, *view.memory, nullptr, view.explain});
    json.end_object();
  }
}

std::string report_csv(const ReportView& view) {
  const Report& report = view.report;
  const std::vector<Column> columns = time_columns(report);
  std::string text = "rank,count,step_s";
  for (const Column& column : columns) {
    text += "," + column.title + "_s";
  }
  text += "\n";
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    text += fmt::format(
        "{},{},{:.9f}", report.ranks[i].rank, report.ranks[i].count, report.step_time_s());
    for (const Column& column : columns) {
      text += fmt::format(",{:.9f}", static_cast<double>(column.values[i]) * 1e-9);
    }
    text += "\n";
  }
  return text;
}

}  // namespace lockstep::cli
