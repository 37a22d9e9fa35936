// Span table: a trace as rows for spreadsheets and data frames, one per span, in CSV or JSON: where
// it is (step, rank, lane, operation), what it is (name, kind, phase, micro-batch, group, bytes)
// and when (issued, arrived, started, ended, in nanoseconds, as the trace has them).
#pragma once

#include <vector>

#include "core/io/files.h"
#include "core/plan.h"
#include "core/trace.h"

namespace lockstep {

/// Errors as of write_chrome_trace(); `ranks` empty: the first rank of every track.
void write_span_csv(const TextSink& text,
                    const Plan& plan,
                    const Trace& trace,
                    const std::vector<int>& ranks = {});

/// {"columns": [...], "rows": [[...], ...]}, with null for what an operation has not.
void write_span_json(const TextSink& text,
                     const Plan& plan,
                     const Trace& trace,
                     const std::vector<int>& ranks = {});

}  // namespace lockstep
