// MemoryStack: device memory of one rank while a step runs, stacked by category, with the
// allocations that are alive at any moment. Built once; questions cost little, so that a window can
// ask them in every frame.
//
//     const TraceIndex index(plan, step);
//     const MemoryStack stack(index, rank);
//     for (const MemoryColumn& column : stack.columns(window, pixels)) draw_stack(column.bytes);
//     for (const MemoryItem& it : stack.alive(stack.sample_at(cursor)))
//       row(stack.name(it), it.bytes, it.since, it.until);
//
// What it is not: a count of its own (core/memory_timeline.h counts), or memory outside of the plan
// (context, libraries, fragmentation: core/memory_report.h). Index and plan must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/memory_timeline.h"
#include "visualizer/models/timeline.h"

namespace lockstep::view {

/// One column of a picture: the moment in it when most was held.
struct MemoryColumn {
  TimeWindow window;
  std::uint32_t sample = 0;  ///< into samples()
  CategoryBytes bytes{};
};

/// An allocation of the plan with device bytes of its own.
struct MemoryItem {
  std::uint32_t buffer = kNoBuffer;
  Category category = Category::kTemporary;
  std::int64_t bytes = 0;
  Nanoseconds since = 0;              ///< the step's begin where it was there before
  Nanoseconds until = 0;              ///< the step's end where it outlives the step
  std::uint32_t allocated = kNoSpan;  ///< operation of the step; kNoSpan: before it
  std::uint32_t freed = kNoSpan;      ///< operation of the step; kNoSpan: not in it
  std::uint32_t module = kNoModule;   ///< that allocated it
  Phase phase = Phase::kInit;         ///< in which it was allocated
  std::int32_t microbatch = -1;
};

class MemoryStack {
 public:
  MemoryStack(const TraceIndex& index, int rank);

  int rank() const { return rank_; }
  TimeWindow whole() const { return {index_.step().begin, index_.step().end}; }
  /// Changes in order; times never fall. The first stands at the step's begin.
  const std::vector<MemorySample>& samples() const { return samples_; }
  /// The last sample that is not later than `time`.
  std::size_t sample_at(Nanoseconds time) const;

  /// The first sample at which most is held.
  std::size_t peak() const { return highest(0, samples_.size()); }
  std::int64_t peak_bytes() const { return totals_[peak()]; }
  /// What is issued there, in words: "matmul 8x8, h.1.mlp.up, micro-batch 0, forward".
  std::string peak_text() const;

  /// `count` columns of equal width; none of an empty window. The highest of a column is exact, so
  /// the peak is never lost.
  std::vector<MemoryColumn> columns(const TimeWindow& window, int count) const;

  /// What is held from samples()[sample] on, largest first, then by buffer.
  std::vector<MemoryItem> alive(std::size_t sample) const;
  /// "h.3.attn.qkv.weight", "embedding+head", "h.3.mlp.up"; of what no module asked for, its phase.
  std::string name(const MemoryItem& item) const;

  /// Categories that this rank ever holds, in their order.
  std::vector<Category> categories() const;

 private:
  void add_persistent();
  void add_items();
  void make_tree();
  /// The first of the highest samples of [first, last).
  std::size_t highest(std::size_t first, std::size_t last) const;
  const Buffer& buffer(std::uint32_t id) const;

  const TraceIndex& index_;
  int rank_;
  std::int32_t track_;
  std::int32_t class_;
  std::vector<MemorySample> samples_;
  std::vector<std::int64_t> totals_;       ///< by sample
  std::vector<std::size_t> tree_;          ///< of the highest samples: parents before children
  std::vector<MemoryItem> items_;          ///< in the order in which they were allocated
  std::vector<std::size_t> items_before_;  ///< by sample: items allocated until then
  std::vector<std::vector<std::uint32_t>> checkpoints_;  ///< every kEvery samples: items alive
};

}  // namespace lockstep::view
