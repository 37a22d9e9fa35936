// Document: everything that can be shown of one scenario: made once on the worker, then constant.
// Views keep a shared pointer to it, so that an edit cannot pull it away under them.
#pragma once

#include <memory>
#include <string>

#include "core/collective_record.h"
#include "core/imported_trace.h"
#include "core/memory_report.h"
#include "core/plan.h"
#include "core/report.h"
#include "core/scenario.h"
#include "core/stop_check.h"
#include "core/trace.h"

namespace lockstep::app {

struct Document {
  Scenario scenario;  ///< resolved
  Plan plan;
  Trace trace;
  int step = 0;  ///< of the trace: the one that is shown
  Report report;
  MemoryReport memory;
  /// The trace of another tool: then there is neither a scenario nor anything made of one.
  std::shared_ptr<const ImportedTrace> imported;
  std::string file;  ///< where it was read from; empty = simulated here

  const TraceStep& shown_step() const { return trace.steps[static_cast<std::size_t>(step)]; }
};
using DocumentPtr = std::shared_ptr<const Document>;
using RecordPtr = std::shared_ptr<const CollectiveRecord>;

/// Plans and simulates, as `lockstep simulate` does. BadInputError for a scenario with problems.
DocumentPtr simulate_document(const Scenario& scenario, const StopCheck& stop_check = {});
/// The same with another step of its trace shown.
DocumentPtr at_step(const Document& document, int step);
/// Of a native trace.
DocumentPtr load_document(const std::string& path, const StopCheck& stop_check = {});
/// Of the trace of another tool: a file, or a folder with one for each rank.
DocumentPtr import_document(const std::string& path, const StopCheck& stop_check = {});

/// What a path turned out to be: a scenario to edit, and a document where it holds a trace.
struct Opened {
  Scenario scenario;
  DocumentPtr document;   ///< null: to be simulated
  RecordPtr record;       ///< a collective, and nothing else
  std::string file = {};  ///< a scenario.json that the scenario is the whole of; where to save it
};

/// A scenario, a Hugging Face config.json, a native trace, a recorded collective, the folder of a
/// training run, a trace of PyTorch's profiler or another Chrome JSON (plain, gzip, a folder of
/// them), or a preset's id. BadInputError says what it is instead.
Opened open_path(const std::string& path, const StopCheck& stop_check = {});

}  // namespace lockstep::app
