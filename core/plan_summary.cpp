#include "core/plan_summary.h"

#include <numeric>

namespace lockstep {
namespace {

bool same(const OperationCount& entry, const Operation& op) {
  return entry.kind == op.kind && entry.work == op.work && entry.collective == op.collective &&
         entry.phase == op.phase && entry.stream == op.stream &&
         entry.communicator == op.communicator && entry.dtype == op.dtype &&
         entry.control == op.has(kControl) && entry.shape == op.shape &&
         entry.elements == op.elements;
}

void add_to(std::vector<OperationCount>& counts, const Operation& op) {
  for (OperationCount& entry : counts) {
    if (same(entry, op)) {
      ++entry.count;
      return;
    }
  }
  counts.push_back({op.kind,
                    op.work,
                    op.collective,
                    op.phase,
                    op.stream,
                    op.communicator,
                    op.dtype,
                    op.has(kControl),
                    op.shape,
                    op.elements,
                    1});
}

}  // namespace

std::int64_t total(const CategoryBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

ProgramSummary summarize(const Plan& plan,
                         int class_index,
                         const Program& program,
                         const CategoryBytes& at_start) {
  ProgramSummary summary;
  summary.at_start = at_start;
  summary.at_end = at_start;
  summary.peak.bytes = at_start;
  std::int64_t held = total(at_start);
  std::int64_t highest = held;
  bool open = true;
  const std::vector<Buffer>& buffers = plan.buffers[static_cast<std::size_t>(class_index)];
  for (const Operation& op : program.operations) {
    ++summary.operations;
    if (op.kind == OperationKind::kAlloc || op.kind == OperationKind::kFree) {
      const Buffer& buffer = buffers[op.buffer];
      const std::int64_t bytes = buffer.storage == Storage::kDevice ? buffer.bytes() : 0;
      const std::int64_t change = op.kind == OperationKind::kAlloc ? bytes : -bytes;
      summary.at_end[static_cast<std::size_t>(buffer.category)] += change;
      held += change;
      if (held > highest) {
        highest = held;
        summary.peak.bytes = summary.at_end;
        open = true;
      }
      continue;
    }
    if (open) {
      open = false;
      summary.peak.phase = op.phase;
      summary.peak.work = op.work;
      summary.peak.module = op.module;
      summary.peak.microbatch = op.microbatch;
    }
    add_to(summary.counts, op);
  }
  if (open) {  // nothing was issued after the peak
    summary.peak = {summary.peak.bytes};
  }
  return summary;
}

}  // namespace lockstep
