#include "executor/interpreter.h"

#include <ctime>

#include "core/error.h"
#include "executor/work_call.h"

namespace lockstep::exec {
namespace {

Nanoseconds now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return Nanoseconds{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

bool runs_here(const Operation& op) {
  return op.kind == OperationKind::kHost || op.stream == Stream::kCompute;
}

}  // namespace

Interpreter::Interpreter(const InterpreterInput& input)
    : in_(input), memory_(input.plan, input.rank, input.device) {
  for (int axis = 0; axis < kAxisCount; ++axis) {
    coordinates_.push_back(input.plan.mesh.coordinate(input.rank, static_cast<Axis>(axis)));
  }
  place_.rank = input.rank;
  place_.data_coordinate = input.plan.mesh.index(kDataAxes, input.rank);
}

void Interpreter::run(int section, std::int64_t iteration) {
  begin(section, iteration);
  const auto count = static_cast<std::uint32_t>(program_->operations.size());
  for (std::uint32_t index = 0; index < count; ++index) {
    step_over(index);
  }
  in_.device.synchronize();
  finish_spans();
}

void Interpreter::begin(int section, std::int64_t iteration) {
  const Section& it = in_.plan.sections[static_cast<std::size_t>(section)];
  program_ = &it.programs[static_cast<std::size_t>(in_.plan.class_of_rank(in_.rank))];
  section_ = section;
  place_.section = it.kind;
  place_.iteration = iteration;
  host_free_ = now();
  queues_ = {};
  const std::size_t count = program_->operations.size();
  issued_.assign(count, {});
  resolved_.resize(program_->views.size());
  slot_.assign(count, 0);
  spans_.clear();
  for (std::uint32_t index = 0; index < count; ++index) {
    if (takes_place(program_->operations[index])) {
      slot_[index] = static_cast<std::uint32_t>(spans_.size());
      spans_.emplace_back().operation = index;
    }
  }
  transfers_.assign(spans_.size(), {});
}

void Interpreter::step_over(std::uint32_t index) {
  const Operation& op = program_->operations[index];
  switch (op.kind) {
    case OperationKind::kAlloc:
      return memory_.allocate(op.buffer);
    case OperationKind::kFree:
      return memory_.free(op.buffer);
    case OperationKind::kCompute:
    case OperationKind::kCopy:
    case OperationKind::kHost:
      return compute(index);
    case OperationKind::kCollective:
    case OperationKind::kSend:
    case OperationKind::kRecv:
      return communicate(index);
  }
}

// ---- order -------------------------------------------------------------------------------------

/// Streams first, then a queue for each peer and direction; what is beyond the device's shares.
StreamId Interpreter::stream_of(const Operation& op) {
  const int queue = queues_.of(op);
  constexpr int kMessages = kMaximumStreams - kStreamCount;
  return static_cast<StreamId>(
      queue < kStreamCount ? queue : kStreamCount + (queue - kStreamCount) % kMessages);
}

void Interpreter::host_waits_for(const Operation& op) {
  for (const std::uint32_t on : program_->dependencies_of(op)) {
    if (issued_[on].waits) {
      in_.device.synchronize(issued_[on].event);
    }
  }
}

void Interpreter::stream_waits_for(StreamId stream, const Operation& op) {
  for (const std::uint32_t on : program_->dependencies_of(op)) {
    if (issued_[on].waits && issued_[on].event.stream != stream) {
      in_.device.wait(stream, issued_[on].event);
    }
  }
}

/// What follows may wait for the operation, and its buffers are in use until it ends.
void Interpreter::finish_issue(std::uint32_t index, StreamId stream, const Operation& op) {
  issued_[index] = {in_.device.record(stream), true};
  const std::uint32_t views = op.first_view + op.inputs + op.outputs;
  for (std::uint32_t view = op.first_view; view < views; ++view) {
    if (program_->views[view].buffer != kNoBuffer) {
      memory_.used_until(program_->views[view].buffer, issued_[index].event);
    }
  }
  if (op.has(kHostSync)) {
    in_.device.synchronize(issued_[index].event);
    host_free_ = now();
  }
}

// ---- operations --------------------------------------------------------------------------------

/// Memory as it lies now: by the time a stream comes to the operation, the host may be far ahead.
void Interpreter::resolve(const Operation& op) {
  const std::uint32_t end = op.first_view + op.inputs + op.outputs;
  for (std::uint32_t view = op.first_view; view < end; ++view) {
    const View& it = program_->views[view];
    resolved_[view] = it.buffer == kNoBuffer ? Operand{} : memory_.operand(it);
  }
}

bool Interpreter::skipped(const Operation& op) {
  if (op.guard == kNoBuffer) {
    return false;
  }
  host_waits_for(op);  // the flag is one of its dependencies
  const Operand flag = memory_.operand({op.guard, Axis::kNone, 0, 1, 0});
  return flag.dtype == DType::kFp64 ? *flag.as<double>() != 0 : *flag.as<float>() != 0;
}

void Interpreter::compute(std::uint32_t index) {
  const Operation& op = program_->operations[index];
  Span& it = span(index);
  it.issued = host_free_;
  if (skipped(op)) {
    it.state = SpanState::kSkipped;
    it.arrived = it.started = it.ended = host_free_ = now();
    return;
  }
  resolve(op);
  if (runs_here(op)) {
    host_waits_for(op);
    it.arrived = it.started = now();
    work(index);
    it.ended = host_free_ = now();
    return;
  }
  const StreamId stream = stream_of(op);
  stream_waits_for(stream, op);
  in_.device.enqueue(stream, make_task([this, index] {
                       Span& own = span(index);
                       own.arrived = own.started = now();
                       work(index);
                       own.ended = now();
                     }));
  finish_issue(index, stream, op);
}

void Interpreter::work(std::uint32_t index) {
  const Operation& op = program_->operations[index];
  const Operand* operands = this->operands(op);
  RunPlace place = place_;
  place.microbatch = op.microbatch;
  WorkCall call{*in_.plan.graph,
                in_.training,
                op,
                in_.plan.shapes[op.shape],
                {operands, op.inputs},
                {operands + op.inputs, op.outputs},
                nullptr,
                0,
                {},
                place,
                in_.plan.mesh.size(Axis::kTensor),
                coordinates_[static_cast<std::size_t>(Axis::kTensor)],
                coordinates_,
                in_.host};
  if (op.layout != kNoLayout) {
    call.layout = &in_.plan.layouts[op.layout];
    call.layout_coordinate = call.layout->coordinates == 1 ? 0
                             : call.layout->coordinates == in_.plan.mesh.size(Axis::kData)
                                 ? coordinates_[static_cast<std::size_t>(Axis::kData)]
                                 : place.data_coordinate;
  }
  if (op.scalar != kNoScalar) {
    const Scalar& scalar = in_.plan.scalars[op.scalar];
    if (scalar.source == Scalar::Source::kConstant) {
      call.factor = scalar.value();
    } else if (scalar.source == Scalar::Source::kHost) {
      call.factor = in_.host.learning_rate(place.iteration);
    }
  }
  run_work(call);
}

void Interpreter::communicate(std::uint32_t index) {
  const Operation& op = program_->operations[index];
  span(index).issued = host_free_;
  resolve(op);
  const Operand* operands = this->operands(op);
  const StreamId stream = stream_of(op);
  stream_waits_for(stream, op);
  Communicator& communicator = *in_.communicators[op.communicator];
  Transfer transfer;
  transfer.kind = op.kind;
  transfer.collective = op.collective;
  transfer.reduction = op.reduction;
  transfer.dtype = op.dtype;
  transfer.peer = op.kind == OperationKind::kCollective ? op.root : op.peer;
  transfer.tag = op.tag;
  transfer.elements = op.elements;
  transfer.in = op.inputs > 0 ? operands[0].data : nullptr;
  transfer.out = op.outputs > 0 ? operands[op.inputs].data : nullptr;
  transfer.label = {section_, in_.plan.class_of_rank(in_.rank), index};
  transfer.times = &transfers_[slot_[index]];
  communicator.issue(in_.device, stream, transfer);
  finish_issue(index, stream, op);
}

void Interpreter::finish_spans() {
  for (std::size_t slot = 0; slot < spans_.size(); ++slot) {
    const Operation& op = program_->operations[spans_[slot].operation];
    if (op.communicator != kNoCommunicator) {
      spans_[slot].arrived = std::max(spans_[slot].issued, transfers_[slot].arrived);
      spans_[slot].started = transfers_[slot].started;
      spans_[slot].ended = transfers_[slot].ended;
    }
  }
}

}  // namespace lockstep::exec
