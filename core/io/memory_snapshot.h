// Memory snapshot: allocations and frees of ranks in the form that torch.cuda.memory._dump_snapshot
// leaves, for pytorch.org/memory_viz and torch/cuda/_memory_viz.py.
//
// Every rank is one device. Sizes, order and what is alive are the plan's (rule R1 of core/plan.h),
// times those of core/memory_timeline.h; addresses are made up, first fit in one segment, because a
// plan has none. A buffer's category is its category, its frames say which operation allocates it
// and what it is for. What the rank held before the first step is allocated at its beginning.
#pragma once

#include <vector>

#include "core/io/files.h"
#include "core/plan.h"
#include "core/trace.h"

namespace lockstep {

/// Errors as of write_chrome_trace(); `ranks` empty: the first rank of every track.
void write_memory_snapshot(const TextSink& bytes,
                           const Plan& plan,
                           const Trace& trace,
                           const std::vector<int>& ranks = {});

}  // namespace lockstep
