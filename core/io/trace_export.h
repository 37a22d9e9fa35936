// TraceExport: a trace in the form of other tools, by the form's name: what `lockstep trace
// --format` and the window's export menu write.
//
//     export_trace({TraceForm::kChrome, "step.json"}, scenario, plan, trace);
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/plan.h"
#include "core/scenario.h"
#include "core/stop_check.h"
#include "core/trace.h"

namespace lockstep {

enum class TraceForm : std::uint8_t {
  kChrome,     ///< JSON for Perfetto
  kKineto,     ///< a folder of PyTorch profiles, one per rank
  kMemoryViz,  ///< a snapshot for pytorch.org/memory_viz
  kCsv,        ///< a row per span
  kJson,       ///< the same rows
};
/// "chrome", "kineto", "memory_viz", "csv", "json", in the order of TraceForm.
std::span<const std::string_view> trace_form_names();
std::string_view name_of(TraceForm form);
std::optional<TraceForm> parse_trace_form(std::string_view name);

struct TraceExport {
  TraceForm form = TraceForm::kChrome;
  std::filesystem::path path;   ///< a file; of kKineto a folder, which is made
  std::vector<int> ranks = {};  ///< empty: the first rank of every track
  StopCheck stop_check = {};    ///< called with every piece that is written
};

/// Files are whole or not there. Errors as of write_chrome_trace(); NotSupportedError for what
/// cannot be written.
void export_trace(const TraceExport& wanted,
                  const Scenario& scenario,
                  const Plan& plan,
                  const Trace& trace);

}  // namespace lockstep
