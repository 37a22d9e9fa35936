// The memory report in its three written forms: text for people, JSON and CSV for programs.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "core/io/json_writer.h"
#include "core/memory_advice.h"
#include "core/memory_report.h"

namespace lockstep::cli {

struct MemoryView {
  const Scenario& scenario;
  const MemoryReport& report;
  const MemoryAdvice* advice = nullptr;  ///< null: not asked for
  bool explain = false;
};

std::string memory_text(const MemoryView& view, const Terminal& terminal);
std::string memory_json(const MemoryView& view);
/// The same without schema_version: fields into an open object.
void write_memory(JsonWriter& json, const MemoryView& view);
std::string memory_csv(const MemoryView& view);

}  // namespace lockstep::cli
