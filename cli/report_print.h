// A report of a step in its written forms: text for people, JSON by the command contract and CSV.
// The same for simulated and measured steps.
#pragma once

#include <string>

#include "cli/memory_text.h"
#include "cli/terminal.h"
#include "core/io/json_writer.h"
#include "core/report.h"

namespace lockstep::cli {

struct ReportView {
  const Scenario& scenario;
  const Plan& plan;
  const Report& report;
  const MemoryReport* memory = nullptr;  ///< null: leave it out
  bool explain = false;                  ///< formulas with their values
};

/// Step time, where it goes by rank, traffic, critical path; without a timeline.
std::string report_text(const ReportView& view);

/// `simulate --json` without what only a simulation knows: fields into an open object.
void write_report(JsonWriter& json, const ReportView& view);

/// One line per track: where its time goes.
std::string report_csv(const ReportView& view);

}  // namespace lockstep::cli
