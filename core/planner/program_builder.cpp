#include "core/planner/program_builder.h"

#include <algorithm>

namespace lockstep {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdULL;
}

std::uint64_t hash_of(const Shape& shape) {
  std::uint64_t hash = 0;
  for (const std::int64_t extent : shape.extent) {
    hash = mix(hash, static_cast<std::uint64_t>(extent));
  }
  return hash;
}

/// Buffers with equal keys are interchangeable: the id of a freed one may be used again.
std::uint64_t key_of(const Buffer& buffer) {
  std::uint64_t key = mix(static_cast<std::uint64_t>(buffer.category) * 64 +
                              static_cast<std::uint64_t>(buffer.dtype) * 8 +
                              static_cast<std::uint64_t>(buffer.storage),
                          static_cast<std::uint64_t>(buffer.elements));
  key = mix(key,
            (static_cast<std::uint64_t>(buffer.layout) << 32U) +
                static_cast<std::uint32_t>(buffer.parameter));
  return mix(key,
             (static_cast<std::uint64_t>(buffer.alias_of) << 32U) +
                 static_cast<std::uint64_t>(buffer.alias_offset));
}

/// Index of `value` in `table`, appended when it is not there. For tables of a few dozen entries.
template <typename T>
std::size_t index_in(std::vector<T>& table, const T& value, std::size_t limit) {
  const auto found = std::find(table.begin(), table.end(), value);
  if (found == table.end()) {
    LOCKSTEP_CHECK(table.size() < limit, "plan table is full");
    table.push_back(value);
    return table.size() - 1;
  }
  return static_cast<std::size_t>(found - table.begin());
}

std::size_t index_of(Stream stream) {
  return static_cast<std::size_t>(stream);
}

}  // namespace

PlanBuilder::PlanBuilder(Mesh mesh, std::shared_ptr<const ModelGraph> graph) {
  plan_.mesh = mesh;
  plan_.graph = std::move(graph);
  plan_.shapes.emplace_back();
}

std::uint8_t PlanBuilder::communicator(AxisMask axes,
                                       std::uint64_t pipeline_coordinates,
                                       bool control) {
  return static_cast<std::uint8_t>(index_in(
      plan_.communicators, Communicator{axes, pipeline_coordinates, control}, kNoCommunicator));
}

std::uint16_t PlanBuilder::layout(const Layout& layout) {
  LOCKSTEP_CHECK(plan_.layouts.size() < kNoLayout, "plan has too many layouts");
  plan_.layouts.push_back(layout);
  return static_cast<std::uint16_t>(plan_.layouts.size() - 1);
}

std::uint32_t PlanBuilder::shape(const Shape& shape) {
  std::vector<std::uint32_t>& bucket = shape_index_[hash_of(shape)];
  for (const std::uint32_t index : bucket) {
    if (plan_.shapes[index] == shape) {
      return index;
    }
  }
  plan_.shapes.push_back(shape);
  bucket.push_back(static_cast<std::uint32_t>(plan_.shapes.size() - 1));
  return bucket.back();
}

std::uint16_t PlanBuilder::scalar(const Scalar& scalar) {
  return static_cast<std::uint16_t>(index_in(plan_.scalars, scalar, kNoScalar));
}

std::uint16_t PlanBuilder::factor(std::int64_t numerator, std::int64_t denominator) {
  return scalar({Scalar::Source::kConstant, Scalar::Meaning::kFactor, numerator, denominator});
}

ProgramBuilder::ProgramBuilder(PlanBuilder& tables, Mode mode) : tables_(tables), mode_(mode) {}

void ProgramBuilder::begin_section() {
  program_ = {};
  for (auto& row : synced_) {
    row.fill(-1);
  }
  for (BufferState& state : state_) {
    state.writer = kNoOperation;
    state.reader.fill(kNoOperation);
  }
  at_start_ = held_;
  peak_ = {};
  peak_.bytes = held_;
  peak_total_ = held_total_;
  peak_open_ = true;
  operations_ = 0;
  counts_.clear();
  count_table_.clear();
  journal_.clear();
  fragments_.clear();
}

Program ProgramBuilder::end_section() {
  if (counting()) {
    for (auto& [key, fragment] : fragments_) {
      for (const auto& [entry, times] : fragment.counts) {
        counts_[entry].count += times * fragment.times;
      }
      operations_ += fragment.operations * fragment.times;
      fragment.times = 0;
    }
  }
  return std::move(program_);
}

ProgramSummary ProgramBuilder::summary() const {
  return {counts_, operations_, at_start_, held_, peak_};
}

std::vector<Buffer> ProgramBuilder::take_buffers() {
  return std::move(buffers_);
}

void ProgramBuilder::at(Phase phase, std::uint32_t module, std::int32_t microbatch) {
  phase_ = phase;
  module_ = module;
  microbatch_ = microbatch;
}

Operation ProgramBuilder::operation(OperationKind kind, const Extras& extras) const {
  Operation op;
  op.kind = kind;
  op.phase = phase_;
  op.module = module_;
  op.microbatch = static_cast<std::int16_t>(microbatch_);
  op.stream = extras.stream;
  op.flags = extras.flags;
  op.scalar = extras.scalar;
  op.layout = extras.layout;
  op.guard = extras.guard;
  op.issue = extras.issue;
  op.root = extras.root;
  return op;
}

// ---- buffers -----------------------------------------------------------------------------------

BufferId ProgramBuilder::new_buffer(const Buffer& buffer) {
  if (!counting() && buffer.lifetime == Lifetime::kStep) {
    std::vector<BufferId>& ids = free_ids_[key_of(buffer)];
    if (!ids.empty()) {
      const BufferId id = ids.back();
      ids.pop_back();
      return id;
    }
  }
  buffers_.push_back(buffer);
  state_.emplace_back();
  return static_cast<BufferId>(buffers_.size() - 1);
}

BufferId ProgramBuilder::alloc(Category category,
                               DType dtype,
                               std::int64_t elements,
                               const AllocOptions& options) {
  Buffer buffer;
  buffer.category = category;
  buffer.dtype = dtype;
  buffer.lifetime = options.lifetime;
  buffer.storage = options.storage;
  buffer.layout = options.layout;
  buffer.parameter = options.parameter;
  buffer.alias_of = options.alias_of;
  buffer.alias_offset = options.alias_offset;
  buffer.elements = elements;
  const BufferId id = new_buffer(buffer);
  BufferState& state = state_[id];
  state.live = true;
  state.writer = kNoOperation;
  state.reader.fill(kNoOperation);
  if (options.alias_of != kNoBuffer) {
    state.writer = state_[options.alias_of].writer;
    state.writer_stream = state_[options.alias_of].writer_stream;
  }
  hold(category, buffer.storage == Storage::kDevice ? buffer.bytes() : 0);
  operations_ += multiplicity_;
  if (!counting()) {
    Operation op = operation(OperationKind::kAlloc, {});
    op.buffer = id;
    op.dtype = dtype;
    op.first_view = static_cast<std::uint32_t>(program_.views.size());
    op.first_dependency = static_cast<std::uint32_t>(program_.dependencies.size());
    program_.operations.push_back(op);
  }
  return id;
}

void ProgramBuilder::free(BufferId id) {
  BufferState& state = state_[id];
  LOCKSTEP_CHECK(state.live, "buffer is freed twice while building a plan");
  state.live = false;
  const Buffer& buffer = buffers_[id];
  hold(buffer.category, buffer.storage == Storage::kDevice ? -buffer.bytes() : 0);
  operations_ += multiplicity_;
  if (counting()) {
    return;
  }
  // The free belongs to the compute stream and waits for the last use on every other stream.
  const View all = whole(id);
  pending_.clear();
  infer_dependencies(Stream::kCompute, {}, {&all, 1});
  Operation op = operation(OperationKind::kFree, {});
  op.buffer = id;
  op.dtype = buffer.dtype;
  op.first_view = static_cast<std::uint32_t>(program_.views.size());
  op.first_dependency = static_cast<std::uint32_t>(program_.dependencies.size());
  op.dependencies = static_cast<std::uint16_t>(pending_.size());
  program_.dependencies.insert(program_.dependencies.end(), pending_.begin(), pending_.end());
  program_.operations.push_back(op);
  if (buffer.lifetime == Lifetime::kStep) {
    free_ids_[key_of(buffer)].push_back(id);
  }
}

void ProgramBuilder::hold(Category category, std::int64_t bytes) {
  held_[static_cast<std::size_t>(category)] += bytes;
  held_total_ += bytes;
  if (held_total_ > peak_total_) {
    peak_total_ = held_total_;
    peak_.bytes = held_;
    peak_open_ = true;
  }
}

// ---- operations --------------------------------------------------------------------------------

OperationId ProgramBuilder::compute(
    Work work, const Shape& shape, Views inputs, Views outputs, const Extras& extras) {
  Operation op = operation(OperationKind::kCompute, extras);
  op.work = work;
  op.shape = tables_.shape(shape);
  op.dtype = !outputs.empty()  ? buffers_[outputs.front().buffer].dtype
             : !inputs.empty() ? buffers_[inputs.front().buffer].dtype
                               : DType::kFp32;
  return emit(op, inputs, outputs, extras);
}

OperationId ProgramBuilder::host(Work work,
                                 const Shape& shape,
                                 std::initializer_list<View> inputs,
                                 std::initializer_list<View> outputs,
                                 const Extras& extras) {
  Operation op = operation(OperationKind::kHost, extras);
  op.stream = Stream::kHost;
  op.work = work;
  op.shape = tables_.shape(shape);
  return emit(op, {inputs.begin(), inputs.size()}, {outputs.begin(), outputs.size()}, extras);
}

OperationId ProgramBuilder::collective(Collective kind,
                                       std::uint8_t communicator,
                                       Reduction reduction,
                                       std::int64_t elements,
                                       const View& input,
                                       const View& output,
                                       const Extras& extras) {
  Operation op = operation(OperationKind::kCollective, extras);
  op.collective = kind;
  op.communicator = communicator;
  op.reduction = reduction;
  op.elements = elements;
  op.dtype = buffers_[input.buffer].dtype;
  if (input.buffer == output.buffer) {
    op.flags |= kInPlace;
  }
  return emit(op, {&input, 1}, {&output, 1}, extras);
}

OperationId ProgramBuilder::send(std::uint8_t communicator,
                                 int peer,
                                 std::uint32_t tag,
                                 const View& input) {
  Extras extras;
  extras.stream = Stream::kPipeline;
  Operation op = operation(OperationKind::kSend, extras);
  op.communicator = communicator;
  op.peer = static_cast<std::int16_t>(peer);
  op.tag = tag;
  op.elements = input.elements;
  op.dtype = buffers_[input.buffer].dtype;
  return emit(op, {&input, 1}, {}, extras);
}

OperationId ProgramBuilder::recv(std::uint8_t communicator,
                                 int peer,
                                 std::uint32_t tag,
                                 const View& output) {
  Extras extras;
  extras.stream = Stream::kPipeline;
  Operation op = operation(OperationKind::kRecv, extras);
  op.communicator = communicator;
  op.peer = static_cast<std::int16_t>(peer);
  op.tag = tag;
  op.elements = output.elements;
  op.dtype = buffers_[output.buffer].dtype;
  return emit(op, {}, {&output, 1}, extras);
}

OperationId ProgramBuilder::emit(Operation op, Views inputs, Views outputs, const Extras& extras) {
  operations_ += multiplicity_;
  if (peak_open_) {
    peak_open_ = false;
    peak_.phase = op.phase;
    peak_.work = op.work;
    peak_.module = op.module;
    peak_.microbatch = op.microbatch;
  }
  if (counting()) {
    count(op);
    return 0;
  }
  pending_.clear();
  infer_dependencies(op.stream, inputs, outputs);
  for (const OperationId after : extras.after) {
    if (after != kNoOperation) {
      depend(op.stream, after, program_.operations[after].stream);
    }
  }
  if (op.guard != kNoBuffer) {
    const View flag = whole(op.guard);
    infer_dependencies(op.stream, {&flag, 1}, {});
  }
  const OperationId id = next_operation();
  op.inputs = static_cast<std::uint8_t>(inputs.size());
  op.outputs = static_cast<std::uint8_t>(outputs.size());
  LOCKSTEP_CHECK(inputs.size() < 256 && outputs.size() < 256, "operation has too many operands");
  op.first_view = static_cast<std::uint32_t>(program_.views.size());
  program_.views.insert(program_.views.end(), inputs.begin(), inputs.end());
  program_.views.insert(program_.views.end(), outputs.begin(), outputs.end());
  op.first_dependency = static_cast<std::uint32_t>(program_.dependencies.size());
  op.dependencies = static_cast<std::uint16_t>(pending_.size());
  program_.dependencies.insert(program_.dependencies.end(), pending_.begin(), pending_.end());
  program_.operations.push_back(op);
  record_use(op.stream, id, inputs, outputs);
  return id;
}

// ---- dependencies ------------------------------------------------------------------------------

void ProgramBuilder::depend(Stream stream, OperationId on, Stream on_stream) {
  if (on == kNoOperation || on_stream == stream) {
    return;
  }
  std::int64_t& synced = synced_[index_of(stream)][index_of(on_stream)];
  if (synced >= static_cast<std::int64_t>(on)) {
    return;
  }
  synced = on;
  pending_.push_back(on);
}

void ProgramBuilder::infer_dependencies(Stream stream, Views inputs, Views outputs) {
  const auto lender = [this](BufferId id) {
    return buffers_[id].alias_of == kNoBuffer ? id : buffers_[id].alias_of;
  };
  for (const View& view : inputs) {
    LOCKSTEP_CHECK(state_[view.buffer].live, "operation reads a buffer that is not allocated");
    const BufferState& state = state_[lender(view.buffer)];
    depend(stream, state.writer, state.writer_stream);
  }
  for (const View& view : outputs) {
    const BufferState& state = state_[lender(view.buffer)];
    depend(stream, state.writer, state.writer_stream);
    for (int other = 0; other < kStreams; ++other) {
      depend(stream, state.reader[static_cast<std::size_t>(other)], static_cast<Stream>(other));
    }
  }
}

void ProgramBuilder::record_use(Stream stream, OperationId id, Views inputs, Views outputs) {
  for (const View& view : inputs) {
    const BufferId lender = buffers_[view.buffer].alias_of;
    state_[lender == kNoBuffer ? view.buffer : lender].reader[index_of(stream)] = id;
  }
  for (const View& view : outputs) {
    const BufferId lender = buffers_[view.buffer].alias_of;
    BufferState& state = state_[lender == kNoBuffer ? view.buffer : lender];
    LOCKSTEP_CHECK(state.live, "operation writes a buffer that is not allocated");
    state.writer = id;
    state.writer_stream = stream;
    state.reader.fill(kNoOperation);
  }
}

// ---- counting ----------------------------------------------------------------------------------

namespace {

std::uint64_t key_of(const OperationCount& entry) {
  const std::uint64_t what = (static_cast<std::uint64_t>(entry.kind) << 56U) |
                             (static_cast<std::uint64_t>(entry.work) << 48U) |
                             (static_cast<std::uint64_t>(entry.collective) << 40U) |
                             (static_cast<std::uint64_t>(entry.phase) << 32U) |
                             (static_cast<std::uint64_t>(entry.communicator) << 24U) |
                             (static_cast<std::uint64_t>(entry.dtype) << 16U) |
                             (static_cast<std::uint64_t>(entry.stream) << 8U) |
                             (entry.control ? 1U : 0U);
  return mix(mix(what, entry.shape), static_cast<std::uint64_t>(entry.elements));
}

bool same_kind(const OperationCount& a, const OperationCount& b) {
  return a.kind == b.kind && a.work == b.work && a.collective == b.collective &&
         a.phase == b.phase && a.communicator == b.communicator && a.dtype == b.dtype &&
         a.stream == b.stream && a.shape == b.shape && a.elements == b.elements &&
         a.control == b.control;
}

}  // namespace

std::uint32_t ProgramBuilder::count_index(const OperationCount& entry) {
  if (count_table_.size() < 2 * (counts_.size() + 1)) {
    count_table_.assign(std::max<std::size_t>(256, count_table_.size() * 2), 0);
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      std::size_t place = key_of(counts_[i]) & (count_table_.size() - 1);
      while (count_table_[place] != 0) {
        place = (place + 1) & (count_table_.size() - 1);
      }
      count_table_[place] = static_cast<std::uint32_t>(i + 1);
    }
  }
  std::size_t place = key_of(entry) & (count_table_.size() - 1);
  while (count_table_[place] != 0 && !same_kind(counts_[count_table_[place] - 1], entry)) {
    place = (place + 1) & (count_table_.size() - 1);
  }
  if (count_table_[place] == 0) {
    counts_.push_back(entry);
    count_table_[place] = static_cast<std::uint32_t>(counts_.size());
  }
  return count_table_[place] - 1;
}

void ProgramBuilder::count(const Operation& op) {
  const std::uint32_t index = count_index({op.kind,
                                           op.work,
                                           op.collective,
                                           op.phase,
                                           op.stream,
                                           op.communicator,
                                           op.dtype,
                                           op.has(kControl),
                                           op.shape,
                                           op.elements,
                                           0});
  if (recording_ > 0) {
    journal_.emplace_back(index, multiplicity_);
  } else {
    counts_[index].count += multiplicity_;
  }
}

void ProgramBuilder::merge_peak(const MemoryPeak& peak, std::int64_t peak_total) {
  if (peak_total > peak_total_) {
    peak_total_ = peak_total;
    peak_ = peak;
    peak_open_ = false;
  }
}

ProgramBuilder::Frame ProgramBuilder::begin_scaled(std::int64_t times) {
  const Frame frame{held_, peak_, peak_total_, 0, operations_};
  peak_.bytes = held_;
  peak_total_ = held_total_;
  multiplicity_ *= times;
  return frame;
}

void ProgramBuilder::end_scaled(std::int64_t times, const Frame& frame) {
  // The body ran once. Each further run starts `delta` higher, so the highest point of all runs is
  // that of the first run (delta <= 0) or of the last one.
  const std::int64_t start_total = total(frame.start);
  const std::int64_t delta_total = held_total_ - start_total;
  const std::int64_t lift = delta_total > 0 ? times - 1 : 0;
  for (std::size_t c = 0; c < held_.size(); ++c) {
    const std::int64_t delta = held_[c] - frame.start[c];
    peak_.bytes[c] += lift * delta;
    held_[c] = frame.start[c] + times * delta;
  }
  held_total_ = start_total + times * delta_total;
  const MemoryPeak inner = peak_;
  const std::int64_t inner_total = peak_total_ + lift * delta_total;
  peak_ = frame.peak;
  peak_total_ = frame.peak_total;
  merge_peak(inner, inner_total);
  multiplicity_ /= times;
}

ProgramBuilder::Frame ProgramBuilder::begin_fragment() {
  const Frame frame{held_, peak_, peak_total_, journal_.size(), operations_};
  peak_.bytes = held_;
  peak_total_ = held_total_;
  ++recording_;
  return frame;
}

void ProgramBuilder::end_fragment(std::uint64_t key, const Frame& frame) {
  --recording_;
  Fragment fragment;
  for (std::size_t c = 0; c < held_.size(); ++c) {
    fragment.delta[c] = held_[c] - frame.start[c];
    fragment.peak_delta[c] = peak_.bytes[c] - frame.start[c];
  }
  fragment.peak = peak_;
  fragment.counts.assign(journal_.begin() + static_cast<std::ptrdiff_t>(frame.journal),
                         journal_.end());
  LOCKSTEP_CHECK(recording_ == 0, "fragments do not nest");
  journal_.resize(frame.journal);
  fragment.times = 1;
  fragment.operations = operations_ - frame.operations;
  operations_ = frame.operations;
  const MemoryPeak inner = peak_;
  const std::int64_t inner_total = peak_total_;
  peak_ = frame.peak;
  peak_total_ = frame.peak_total;
  merge_peak(inner, inner_total);
  fragments_.emplace(key, std::move(fragment));
}

bool ProgramBuilder::replay(std::uint64_t key) {
  const auto found = fragments_.find(key);
  if (found == fragments_.end()) {
    return false;
  }
  Fragment& fragment = found->second;
  fragment.times += 1;
  MemoryPeak peak = fragment.peak;
  for (std::size_t c = 0; c < held_.size(); ++c) {
    peak.bytes[c] = held_[c] + fragment.peak_delta[c];
  }
  merge_peak(peak, held_total_ + total(fragment.peak_delta));
  for (std::size_t c = 0; c < held_.size(); ++c) {
    held_[c] += fragment.delta[c];
  }
  held_total_ += total(fragment.delta);
  return true;
}

}  // namespace lockstep
