#include "visualizer/models/memory_stack.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/model_graph.h"
#include "core/plan_text.h"
#include "visualizer/models/plan_names.h"

namespace lockstep::view {
namespace {

/// Samples between two lists of what is alive.
constexpr std::size_t kEvery = 512;

bool has_bytes(const Buffer& buffer) {
  return buffer.storage == Storage::kDevice && buffer.bytes() > 0;
}

MemoryItem item_of(const Buffer& buffer, const Operation& alloc, Nanoseconds since) {
  MemoryItem item;
  item.buffer = alloc.buffer;
  item.category = buffer.category;
  item.bytes = buffer.bytes();
  item.since = since;
  item.module = alloc.module;
  item.phase = alloc.phase;
  item.microbatch = alloc.microbatch;
  return item;
}

}  // namespace

MemoryStack::MemoryStack(const TraceIndex& index, int rank)
    : index_(index),
      rank_(rank),
      track_(track_of(index, rank)),
      class_(index.track(track_).class_index),
      samples_(memory_timeline(index, track_)) {
  totals_.reserve(samples_.size());
  for (const MemorySample& sample : samples_) {
    totals_.push_back(total(sample.bytes));
  }
  make_tree();
  add_persistent();
  add_items();
}

const Buffer& MemoryStack::buffer(std::uint32_t id) const {
  return index_.plan().buffers[static_cast<std::size_t>(class_)][id];
}

/// What was allocated before the step and not freed; the same sections as bytes_before() counts.
void MemoryStack::add_persistent() {
  const Plan& plan = index_.plan();
  const auto here = static_cast<std::size_t>(index_.step().section);
  if (plan.sections[here].kind == SectionKind::kInit) {
    return;
  }
  std::vector<const Operation*> held(plan.buffers[static_cast<std::size_t>(class_)].size());
  for (std::size_t section = 0; section < here; ++section) {
    const SectionKind kind = plan.sections[section].kind;
    if (kind != SectionKind::kInit && kind != SectionKind::kStep) {
      continue;
    }
    const Program& program = plan.sections[section].programs[static_cast<std::size_t>(class_)];
    for (const Operation& op : program.operations) {
      if (op.kind == OperationKind::kAlloc) {
        held[op.buffer] = &op;
      } else if (op.kind == OperationKind::kFree) {
        held[op.buffer] = nullptr;
      }
    }
  }
  for (const Operation* op : held) {
    if (op != nullptr && has_bytes(buffer(op->buffer))) {
      items_.push_back(item_of(buffer(op->buffer), *op, index_.step().begin));
    }
  }
}

/// Follows the samples: each is an alloc or a free of something that has bytes.
void MemoryStack::add_items() {
  const std::vector<Operation>& operations = index_.program(track_).program->operations;
  constexpr std::uint32_t kNone = 0xffffffffU;
  std::vector<std::uint32_t> item_of_buffer(
      index_.plan().buffers[static_cast<std::size_t>(class_)].size(), kNone);
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    items_[i].until = index_.step().end;
    item_of_buffer[items_[i].buffer] = i;
  }
  for (std::size_t sample = 0; sample < samples_.size(); ++sample) {
    if (samples_[sample].operation != kNoSpan) {
      const Operation& op = operations[samples_[sample].operation];
      if (op.kind == OperationKind::kAlloc) {
        item_of_buffer[op.buffer] = static_cast<std::uint32_t>(items_.size());
        items_.push_back(item_of(buffer(op.buffer), op, samples_[sample].time));
        items_.back().allocated = samples_[sample].operation;
        items_.back().until = index_.step().end;
      } else if (item_of_buffer[op.buffer] != kNone) {
        MemoryItem& item = items_[item_of_buffer[op.buffer]];
        item.until = samples_[sample].time;
        item.freed = samples_[sample].operation;
        item_of_buffer[op.buffer] = kNone;
      }
    }
    items_before_.push_back(items_.size());
    if (sample % kEvery == 0) {
      std::vector<std::uint32_t>& alive = checkpoints_.emplace_back();
      std::copy_if(item_of_buffer.begin(),
                   item_of_buffer.end(),
                   std::back_inserter(alive),
                   [](std::uint32_t item) { return item != kNone; });
    }
  }
}

/// A heap of winners: the leaves are the samples, the root is the peak.
void MemoryStack::make_tree() {
  const std::size_t count = samples_.size();
  tree_.resize(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    tree_[count + i] = i;
  }
  for (std::size_t i = count - 1; i > 0; --i) {
    const std::size_t left = tree_[2 * i];
    const std::size_t right = tree_[2 * i + 1];
    // Of equals the earlier; children of a row that wraps are not in order.
    const bool right_wins =
        totals_[right] > totals_[left] || (totals_[right] == totals_[left] && right < left);
    tree_[i] = right_wins ? right : left;
  }
}

std::size_t MemoryStack::highest(std::size_t first, std::size_t last) const {
  const std::size_t count = samples_.size();
  std::size_t best = first;
  const auto consider = [&](std::size_t sample) {
    if (totals_[sample] > totals_[best] || (totals_[sample] == totals_[best] && sample < best)) {
      best = sample;
    }
  };
  for (first += count, last += count; first < last; first /= 2, last /= 2) {
    if (first % 2 == 1) {
      consider(tree_[first++]);
    }
    if (last % 2 == 1) {
      consider(tree_[--last]);
    }
  }
  return best;
}

std::size_t MemoryStack::sample_at(Nanoseconds time) const {
  const auto after = std::upper_bound(
      samples_.begin(), samples_.end(), time, [](Nanoseconds at, const MemorySample& sample) {
        return at < sample.time;
      });
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, after - samples_.begin()) - 1);
}

std::string MemoryStack::peak_text() const {
  const std::vector<Operation>& operations = index_.program(track_).program->operations;
  const std::uint32_t changed = samples_[peak()].operation;
  for (std::size_t i = changed == kNoSpan ? 0 : changed; i < operations.size(); ++i) {
    if (operations[i].kind != OperationKind::kAlloc && operations[i].kind != OperationKind::kFree) {
      return operation_text(index_.plan(), class_, operations[i]);
    }
  }
  return "the end of the step";
}

std::vector<MemoryColumn> MemoryStack::columns(const TimeWindow& window, int count) const {
  std::vector<MemoryColumn> columns;
  if (window.length() <= 0) {
    return columns;
  }
  const auto first_from = [&](Nanoseconds time) {
    return static_cast<std::size_t>(
        std::lower_bound(
            samples_.begin(),
            samples_.end(),
            time,
            [](const MemorySample& sample, Nanoseconds at) { return sample.time < at; }) -
        samples_.begin());
  };
  for (int i = 0; i < count; ++i) {
    MemoryColumn& column = columns.emplace_back();
    column.window.from = window.from + window.length() * i / count;
    column.window.to = window.from + window.length() * (i + 1) / count;
    // What the column begins with counts too. The last column has its end, where a step ends.
    std::size_t first = first_from(column.window.from);
    const bool changes_there =
        first < samples_.size() && samples_[first].time == column.window.from;
    first -= first > 0 && !changes_there ? 1 : 0;
    const std::size_t last = first_from(column.window.to + (i + 1 == count ? 1 : 0));
    column.sample = static_cast<std::uint32_t>(highest(first, std::max(last, first + 1)));
    column.bytes = samples_[column.sample].bytes;
  }
  return columns;
}

std::vector<MemoryItem> MemoryStack::alive(std::size_t sample) const {
  const std::size_t checkpoint = sample / kEvery;
  const std::uint32_t passed = samples_[sample].operation;
  std::vector<MemoryItem> alive;
  const auto add = [&](const MemoryItem& item) {
    const bool gone = item.freed != kNoSpan && passed != kNoSpan && item.freed <= passed;
    if (!gone) {
      alive.push_back(item);
    }
  };
  for (const std::uint32_t item : checkpoints_[checkpoint]) {
    add(items_[item]);
  }
  for (std::size_t i = items_before_[checkpoint * kEvery]; i < items_before_[sample]; ++i) {
    add(items_[i]);
  }
  std::sort(alive.begin(), alive.end(), [](const MemoryItem& a, const MemoryItem& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.buffer < b.buffer;
  });
  return alive;
}

std::string MemoryStack::name(const MemoryItem& item) const {
  const ModelGraph& graph = *index_.plan().graph;
  const Buffer& it = buffer(item.buffer);
  if (it.parameter >= 0) {
    return graph.parameter_name(it.parameter);
  }
  if (it.layout != kNoLayout) {
    return layout_name(graph, index_.plan().layouts[it.layout]);
  }
  if (item.module != kNoModule) {
    return graph.module_name(item.module);
  }
  return it.category == Category::kInput ? "batch" : std::string(name_of(item.phase));
}

std::vector<Category> MemoryStack::categories() const {
  std::vector<Category> held;
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    const bool ever = std::any_of(samples_.begin(),
                                  samples_.end(),
                                  [i](const MemorySample& sample) { return sample.bytes[i] > 0; });
    if (ever) {
      held.push_back(static_cast<Category>(i));
    }
  }
  return held;
}

}  // namespace lockstep::view
