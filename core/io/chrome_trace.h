// Chrome trace: a trace as JSON that ui.perfetto.dev and chrome://tracing open without a complaint.
//
// One process per rank (pid = rank + 1), one thread per stream (tid from 1), complete events (X)
// that never overlap within a thread, arrows (s, f) from send to recv, counters (C) for memory by
// category. Times are microseconds since the trace began, to the nanosecond. Names are printable
// ASCII. What the importer really checks is in tests/support/chrome_trace_checker.h, which tests
// hold every export against.
//
// Written as it goes, so memory does not grow with the trace.
#pragma once

#include <vector>

#include "core/io/files.h"
#include "core/plan.h"
#include "core/trace.h"

namespace lockstep {

struct ChromeTraceOptions {
  std::vector<int> ranks = {};  ///< empty: the first rank of every track of the first step
  bool memory = true;
  bool flows = true;
};

/// Writes all steps. UsageError for a rank that does not exist, BadInputError when the trace does
/// not fit the plan, and what the sink throws.
void write_chrome_trace(const TextSink& text,
                        const Plan& plan,
                        const Trace& trace,
                        const ChromeTraceOptions& options = {});

}  // namespace lockstep
