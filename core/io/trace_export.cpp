#include "core/io/trace_export.h"

#include <algorithm>
#include <array>

#include "core/io/chrome_trace.h"
#include "core/io/files.h"
#include "core/io/kineto_trace.h"
#include "core/io/memory_snapshot.h"
#include "core/io/span_table.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kNames{"chrome", "kineto", "memory_viz", "csv", "json"};

void write_text(const TextSink& text,
                const TraceExport& wanted,
                const Plan& plan,
                const Trace& trace) {
  switch (wanted.form) {
    case TraceForm::kChrome:
      write_chrome_trace(text, plan, trace, {.ranks = wanted.ranks});
      break;
    case TraceForm::kMemoryViz:
      write_memory_snapshot(text, plan, trace, wanted.ranks);
      break;
    case TraceForm::kCsv:
      write_span_csv(text, plan, trace, wanted.ranks);
      break;
    case TraceForm::kJson:
    case TraceForm::kKineto:
      write_span_json(text, plan, trace, wanted.ranks);
      break;
  }
}

void write_folder(const TraceExport& wanted,
                  const ClusterSpec& cluster,
                  const Plan& plan,
                  const Trace& trace) {
  KinetoOptions options;
  options.device = cluster.device.name;
  options.device_bytes = cluster.device.memory_bytes;
  options.devices_per_node = static_cast<int>(cluster.devices_per_node);
  options.ranks = wanted.ranks;
  options.stop_check = wanted.stop_check;
  write_kineto_folder(wanted.path, plan, trace, options);
}

}  // namespace

std::span<const std::string_view> trace_form_names() {
  return kNames;
}

std::string_view name_of(TraceForm form) {
  return kNames[static_cast<std::size_t>(form)];
}

std::optional<TraceForm> parse_trace_form(std::string_view name) {
  const auto* const it = std::find(kNames.begin(), kNames.end(), name);
  return it == kNames.end() ? std::nullopt
                            : std::optional(static_cast<TraceForm>(it - kNames.begin()));
}

void export_trace(const TraceExport& wanted,
                  const Scenario& scenario,
                  const Plan& plan,
                  const Trace& trace) {
  if (wanted.form == TraceForm::kKineto) {
    write_folder(wanted, scenario.cluster, plan, trace);
    return;
  }
  WholeFile file(wanted.path, "trace");
  const auto write = [&](std::string_view text) {
    check_stop(wanted.stop_check);
    file.write(text);
  };
  write_text(write, wanted, plan, trace);
  file.keep();
}

}  // namespace lockstep
