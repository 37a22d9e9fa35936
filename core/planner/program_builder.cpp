#include "core/planner/program_builder.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "core/error.h"
#include "core/planner/mix.h"

namespace lockstep {
namespace {

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

bool alike(const Buffer& a, const Buffer& b) {
  return a.category == b.category && a.dtype == b.dtype && a.lifetime == b.lifetime &&
         a.storage == b.storage && a.layout == b.layout && a.parameter == b.parameter &&
         a.alias_of == b.alias_of && a.alias_offset == b.alias_offset && a.elements == b.elements;
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

/// Works whose first output is a sum over their first input, often in a wider type.
bool sums_its_input(Work work) {
  switch (work) {
    case Work::kMatmulGradWeight:
    case Work::kEmbeddingGrad:
    case Work::kPositionGrad:
    case Work::kBiasGrad:
    case Work::kBnSums:
    case Work::kBnGradSums:
    case Work::kUnscaleAndCheck:
    case Work::kSumSquares:
      return true;
    default:
      return false;
  }
}

}  // namespace

PlanBuilder::PlanBuilder(Mesh mesh, std::shared_ptr<const ModelGraph> graph, StopCheck stop_check)
    : emitted_(std::move(stop_check)) {
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
  if (plan_.layouts.size() >= kNoLayout) {  // operations name them by 16 bits
    throw NotSupportedError(
        "plan",
        fmt::format("the plan needs more than {} layouts of parameters, one each or one per unit "
                    "or bucket: reduce the layers",
                    kNoLayout));
  }
  plan_.layouts.push_back(layout);
  return static_cast<std::uint16_t>(plan_.layouts.size() - 1);
}

std::uint32_t PlanBuilder::shape(const Shape& shape) {
  if (shape_table_.size() < 2 * (plan_.shapes.size() + 1)) {
    shape_table_.assign(std::max<std::size_t>(256, shape_table_.size() * 2), 0);
    for (std::size_t i = 1; i < plan_.shapes.size(); ++i) {
      shape_table_[shape_place(plan_.shapes[i])] = static_cast<std::uint32_t>(i);
    }
  }
  std::uint32_t& index = shape_table_[shape_place(shape)];
  if (index == 0) {
    index = static_cast<std::uint32_t>(plan_.shapes.size());
    plan_.shapes.push_back(shape);
  }
  return index;
}

/// Where the shape stands in the table, or would.
std::size_t PlanBuilder::shape_place(const Shape& shape) const {
  const std::size_t mask = shape_table_.size() - 1;
  std::size_t place = hash_of(shape) & mask;
  while (shape_table_[place] != 0 && !(plan_.shapes[shape_table_[place]] == shape)) {
    place = (place + 1) & mask;
  }
  return place;
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
  queues_ = {};
  queue_of_.clear();
  compute_waits_.clear();
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
  frames_.clear();
  watching_ = false;
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
  ProgramSummary summary{counts_, operations_, at_start_, held_, peak_};
  if (peak_open_) {  // nothing was issued after it
    summary.peak = {peak_.bytes};
  }
  return summary;
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
  if (counting() && !any_free_ids_.empty()) {
    const BufferId id = any_free_ids_.back();
    any_free_ids_.pop_back();
    buffers_[id] = buffer;
    return id;
  }
  if (!counting() && buffer.lifetime == Lifetime::kStep) {
    std::vector<BufferId>& ids = free_ids_[key_of(buffer)];
    // Keys may collide: only what is alike in every field is used again, the latest first.
    const auto found = std::find_if(
        ids.rbegin(), ids.rend(), [&](BufferId id) { return alike(buffers_[id], buffer); });
    if (found != ids.rend()) {
      const BufferId id = *found;
      ids.erase(std::next(found).base());
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
  state.owners = 1;
  state.writer = kNoOperation;
  state.reader.fill(kNoOperation);
  if (options.alias_of != kNoBuffer) {
    state.writer = state_[options.alias_of].writer;
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
  const Buffer& buffer = buffers_[id];
  hold(buffer.category, buffer.storage == Storage::kDevice ? -buffer.bytes() : 0);
  operations_ += multiplicity_;
  if (counting()) {
    state.live = false;
    any_free_ids_.push_back(id);
    return;
  }
  // It counts when the host passes it, and nothing waits for it: whoever lends the memory again
  // sees to it that its users are done (PLAN.md, R1).
  state.live = false;
  Operation op = operation(OperationKind::kFree, {});
  op.buffer = id;
  op.dtype = buffer.dtype;
  op.first_view = static_cast<std::uint32_t>(program_.views.size());
  op.first_dependency = static_cast<std::uint32_t>(program_.dependencies.size());
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
  if (muted_) {
    return kNoOperation;
  }
  Operation op = operation(OperationKind::kCompute, extras);
  op.work = work;
  op.shape = tables_.shape(shape);
  // What it computes in: a sum (into fp32 gradients, a norm, a flag) has the type of its terms.
  const bool by_input = !inputs.empty() && (outputs.empty() || sums_its_input(work));
  op.dtype = by_input           ? buffers_[inputs.front().buffer].dtype
             : !outputs.empty() ? buffers_[outputs.front().buffer].dtype
                                : DType::kFp32;
  return emit(op, inputs, outputs, extras);
}

OperationId ProgramBuilder::host(
    Work work, const Shape& shape, Views inputs, Views outputs, const Extras& extras) {
  if (muted_) {
    return kNoOperation;
  }
  Operation op = operation(OperationKind::kHost, extras);
  op.stream = Stream::kHost;
  op.work = work;
  op.shape = tables_.shape(shape);
  return emit(op, inputs, outputs, extras);
}

// What, where and what with: a struct would only rename the parameters.
// NOLINTNEXTLINE(readability-function-size)
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
  const bool reads = input.buffer != kNoBuffer;
  const bool writes = output.buffer != kNoBuffer;
  op.dtype = buffers_[reads ? input.buffer : output.buffer].dtype;
  if (input.buffer == output.buffer) {
    op.flags |= kInPlace;
  }
  return emit(op, Views(&input, reads ? 1 : 0), Views(&output, writes ? 1 : 0), extras);
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
  if (muted_) {
    return kNoOperation;
  }
  operations_ += multiplicity_;
  if (peak_open_ || watching_) {
    const Place place{op.module, op.microbatch};
    meet({op.phase, op.work, place}, place);
  }
  if (counting()) {
    count(op);
    return 0;
  }
  tables_.emitted().one();
  pending_.clear();
  const std::uint8_t queue = queues_.of(op);
  infer_dependencies(queue, inputs, outputs);
  for (const OperationId after : extras.after) {
    depend(queue, after);
  }
  if (queue == index_of(Stream::kCompute)) {
    for (const OperationId waited : std::exchange(compute_waits_, {})) {
      depend(queue, waited);
    }
  }
  if (op.guard != kNoBuffer) {
    const View flag = whole(op.guard);
    infer_dependencies(queue, {&flag, 1}, {});
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
  queue_of_.resize(program_.operations.size());
  queue_of_[id] = queue;
  if (op.guard != kNoBuffer) {
    const View flag = whole(op.guard);
    record_use(op.stream, id, {&flag, 1}, {});
  }
  record_use(op.stream, id, inputs, outputs);
  return id;
}

// ---- dependencies ------------------------------------------------------------------------------

void ProgramBuilder::depend(std::uint8_t queue, OperationId on) {
  if (on == kNoOperation || queue_of_[on] == queue) {
    return;
  }
  std::int64_t& synced = synced_[queue][queue_of_[on]];
  if (synced >= static_cast<std::int64_t>(on)) {
    return;
  }
  synced = on;
  pending_.push_back(on);
}

void ProgramBuilder::infer_dependencies(std::uint8_t queue, Views inputs, Views outputs) {
  const auto lender = [this](BufferId id) {
    return buffers_[id].alias_of == kNoBuffer ? id : buffers_[id].alias_of;
  };
  for (const View& view : inputs) {
    LOCKSTEP_CHECK(state_[view.buffer].live, "operation reads a buffer that is not allocated");
    const BufferState& state = state_[lender(view.buffer)];
    depend(queue, state.writer);
  }
  for (const View& view : outputs) {
    LOCKSTEP_CHECK(state_[view.buffer].live, "operation writes a buffer that is not allocated");
    const BufferState& state = state_[lender(view.buffer)];
    depend(queue, state.writer);
    for (const OperationId reader : state.reader) {
      depend(queue, reader);
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
    state.reader.fill(kNoOperation);
  }
}

}  // namespace lockstep
