#include "core/memory_timeline.h"

#include <algorithm>

namespace lockstep {
namespace {

const Program& program_of(const Plan& plan, int class_index, int section) {
  return plan.sections[static_cast<std::size_t>(section)]
      .programs[static_cast<std::size_t>(class_index)];
}

/// Bytes that an alloc or free adds; 0 for others.
std::int64_t change_of(const std::vector<Buffer>& buffers, const Operation& op) {
  if (op.kind != OperationKind::kAlloc && op.kind != OperationKind::kFree) {
    return 0;
  }
  const Buffer& buffer = buffers[op.buffer];
  const std::int64_t bytes = buffer.storage == Storage::kDevice ? buffer.bytes() : 0;
  return op.kind == OperationKind::kAlloc ? bytes : -bytes;
}

void apply(const std::vector<Buffer>& buffers, const Operation& op, CategoryBytes& bytes) {
  if (const std::int64_t change = change_of(buffers, op)) {
    bytes[static_cast<std::size_t>(buffers[op.buffer].category)] += change;
  }
}

/// Times at which program order can be drawn, asked from front to back.
class DrawingClock {
 public:
  DrawingClock(const TraceIndex& index, int track)
      : index_(index), track_(track), program_(index.program(track)), now_(index.step().begin) {}

  Nanoseconds at(std::uint32_t operation) {
    while (compute_ < program_.compute.size() && program_.compute[compute_] < operation) {
      now_ = std::max(now_, index_.times({track_, program_.compute[compute_]}).ended);
      ++compute_;
    }
    const Operation& op = program_.program->operations[operation];
    if (op.kind == OperationKind::kAlloc) {
      now_ = std::max(now_, next_start(operation));
    }
    return now_;
  }

 private:
  Nanoseconds next_start(std::uint32_t operation) {
    Nanoseconds start = index_.step().end;
    if (compute_ < program_.compute.size()) {
      start = index_.times({track_, program_.compute[compute_]}).started;
    }
    while (span_ < program_.operations.size() && program_.operations[span_] < operation) {
      ++span_;
    }
    if (span_ < program_.operations.size()) {
      start = std::min(start, index_.times({track_, program_.operations[span_]}).started);
    }
    return start;
  }

  const TraceIndex& index_;
  int track_;
  const ProgramIndex& program_;
  Nanoseconds now_;
  std::size_t compute_ = 0;  ///< the first of the compute stream not yet passed
  std::size_t span_ = 0;
};

}  // namespace

CategoryBytes bytes_before(const Plan& plan, int class_index, int section) {
  CategoryBytes bytes{};
  const auto kind = plan.sections[static_cast<std::size_t>(section)].kind;
  if (kind == SectionKind::kInit) {
    return bytes;
  }
  const std::vector<Buffer>& buffers = plan.buffers[static_cast<std::size_t>(class_index)];
  // Step sections follow init and each other; evaluate and save follow the steps.
  for (int earlier = 0; earlier < section; ++earlier) {
    const auto before = plan.sections[static_cast<std::size_t>(earlier)].kind;
    if (before == SectionKind::kInit || before == SectionKind::kStep) {
      for (const Operation& op : program_of(plan, class_index, earlier).operations) {
        apply(buffers, op, bytes);
      }
    }
  }
  return bytes;
}

std::vector<MemorySample> memory_timeline(const TraceIndex& index, int track) {
  const Plan& plan = index.plan();
  const int class_index = index.track(track).class_index;
  const std::vector<Buffer>& buffers = plan.buffers[static_cast<std::size_t>(class_index)];
  const std::vector<Operation>& operations = index.program(track).program->operations;
  DrawingClock clock(index, track);
  std::vector<MemorySample> samples;
  MemorySample now{
      index.step().begin, bytes_before(plan, class_index, index.step().section), kNoSpan};
  samples.push_back(now);
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    if (change_of(buffers, operations[i]) != 0) {
      apply(buffers, operations[i], now.bytes);
      now.time = std::min(clock.at(i), index.step().end);
      now.operation = i;
      samples.push_back(now);
    }
  }
  return samples;
}

std::vector<MemorySample> memory_timeline(const Plan& plan, const TraceStep& step, int rank) {
  const TraceIndex index(plan, step);
  return memory_timeline(index, step.track_of_rank[static_cast<std::size_t>(rank)]);
}

MemoryMoment highest_memory(const Plan& plan, int class_index, int section) {
  const std::vector<Buffer>& buffers = plan.buffers[static_cast<std::size_t>(class_index)];
  const std::vector<Operation>& operations = program_of(plan, class_index, section).operations;
  CategoryBytes bytes = bytes_before(plan, class_index, section);
  MemoryMoment highest{bytes, kNoSpan, 0};
  std::int64_t held = total(bytes);
  std::int64_t most = held;
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    apply(buffers, operations[i], bytes);
    held += change_of(buffers, operations[i]);
    if (held > most) {
      most = held;
      highest.bytes = bytes;
      highest.position = i + 1;
    }
  }
  for (std::uint32_t i = highest.position; i < operations.size(); ++i) {
    const OperationKind kind = operations[i].kind;
    if (kind != OperationKind::kAlloc && kind != OperationKind::kFree) {
      highest.operation = i;
      break;
    }
  }
  return highest;
}

}  // namespace lockstep
