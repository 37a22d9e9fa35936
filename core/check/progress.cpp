#include "core/check/progress.h"

#include <algorithm>

#include "core/queues.h"

namespace lockstep {

Progress::Progress(const CheckContext& context, int section, const MessagePartners& partners)
    : context_(context), section_(section), partners_(partners) {
  classes_.resize(static_cast<std::size_t>(context.plan.class_count()));
  for (int index = 0; index < context.plan.class_count(); ++index) {
    fill_lines(index);
  }
  for (const ClassGroups& groups : context.groups) {
    arrived_.emplace_back(groups.groups.size(), 0);
  }
}

void Progress::fill_lines(int class_index) {
  ClassState& state = at(class_index);
  state.program = &context_.program(section_, class_index);
  state.queues.resize(context_.plan.communicators.size());
  state.states.assign(state.program->operations.size(), State::kWaiting);
  for (std::uint32_t index = 0; index < state.states.size(); ++index) {
    const Operation& op = state.program->operations[index];
    // Alloc and free happen when the host passes them (R1): no stream waits for them.
    if (!takes_place(op) || !context_.launches(section_, class_index, index)) {
      state.states[index] = takes_place(op) ? State::kWaiting : State::kDone;
      continue;
    }
    stream_of(state, op).operations.push_back(index);
    if (op.communicator != kNoCommunicator) {
      state.queues[op.communicator].operations.push_back(index);
    }
    if (op.has(kHostSync)) {
      state.syncs.operations.push_back(index);
    }
  }
}

void Progress::schedule(int class_index) {
  if (!at(class_index).scheduled) {
    at(class_index).scheduled = true;
    scheduled_.push_back(class_index);
  }
}

void Progress::run() {
  for (int index = 0; index < static_cast<int>(classes_.size()); ++index) {
    schedule(index);
  }
  while (!scheduled_.empty()) {
    const int index = scheduled_.back();
    scheduled_.pop_back();
    at(index).scheduled = false;
    while (advance(index)) {
    }
  }
}

/// One round over the streams of a class; whether something got done.
bool Progress::advance(int class_index) {
  bool moved = false;
  for (std::size_t stream = 0; stream < kStreamCount; ++stream) {
    const Line& line = at(class_index).streams[stream];
    while (!line.ended() && try_finish({class_index, line.head()})) {
      moved = true;
    }
  }
  return moved;
}

bool Progress::is_ready(const ClassState& state, std::uint32_t operation) const {
  const Operation& op = state.program->operations[operation];
  if (!state.syncs.ended() && operation > state.syncs.head()) {
    return false;
  }
  if (op.communicator != kNoCommunicator && !state.queues[op.communicator].is_head(operation)) {
    return false;
  }
  for (const std::uint32_t on : state.program->dependencies_of(op)) {
    if (state.states[on] != State::kDone) {
      return false;
    }
  }
  return true;
}

bool Progress::try_finish(const ClassOperation& where) {
  ClassState& state = at(where.class_index);
  if (state.states[where.operation] == State::kArrived || !is_ready(state, where.operation)) {
    return false;
  }
  switch (operation(where).kind) {
    case OperationKind::kCollective:
      return try_collective(where);
    case OperationKind::kSend:
    case OperationKind::kRecv:
      return try_message(where);
    default:
      finish(where);
      return true;
  }
}

bool Progress::try_collective(const ClassOperation& where) {
  const std::uint8_t communicator = operation(where).communicator;
  const ClassGroups& groups = context_.groups[communicator];
  const auto group =
      static_cast<std::size_t>(groups.group_of_class[static_cast<std::size_t>(where.class_index)]);
  const std::vector<int>& member_classes = groups.groups[group];
  at(where.class_index).states[where.operation] = State::kArrived;
  int& arrived = arrived_[communicator][group];
  if (++arrived < static_cast<int>(member_classes.size())) {
    return false;
  }
  arrived = 0;
  for (const int member : member_classes) {
    // Its head is the collective at which it arrived.
    finish({member, at(member).queues[communicator].head()});
    schedule(member);
  }
  return true;
}

bool Progress::try_message(const ClassOperation& where) {
  at(where.class_index).states[where.operation] = State::kArrived;
  const ClassOperation* partner = partner_of(where);
  if (partner == nullptr ||
      at(partner->class_index).states[partner->operation] != State::kArrived) {
    return false;
  }
  finish(where);
  finish(*partner);
  schedule(partner->class_index);
  return true;
}

void Progress::finish(const ClassOperation& where) {
  ClassState& state = at(where.class_index);
  const Operation& op = operation(where);
  state.states[where.operation] = State::kDone;
  ++stream_of(state, op).done;
  if (op.communicator != kNoCommunicator) {
    ++state.queues[op.communicator].done;
  }
  while (!state.syncs.ended() && state.states[state.syncs.head()] == State::kDone) {
    ++state.syncs.done;
  }
}

const ClassOperation* Progress::partner_of(const ClassOperation& where) const {
  const std::vector<MessagePartner>& list = partners_[static_cast<std::size_t>(where.class_index)];
  const auto found = std::lower_bound(
      list.begin(), list.end(), where.operation, [](const MessagePartner& a, std::uint32_t b) {
        return a.operation < b;
      });
  return found != list.end() && found->operation == where.operation ? &found->partner : nullptr;
}

std::vector<ClassOperation> Progress::blocked() const {
  std::vector<ClassOperation> result;
  for (int index = 0; index < static_cast<int>(classes_.size()); ++index) {
    for (const Line& line : at(index).streams) {
      if (!line.ended()) {
        result.push_back({index, line.head()});
      }
    }
  }
  return result;
}

std::vector<Progress::Wait> Progress::waits_of(const ClassOperation& where) const {
  const ClassState& state = at(where.class_index);
  const Operation& op = operation(where);
  std::vector<Wait> waits;
  const auto add = [&](Reason reason, std::uint32_t on) {
    waits.push_back({reason, {where.class_index, on}});
  };
  if (!state.syncs.ended() && where.operation > state.syncs.head()) {
    add(Reason::kHost, state.syncs.head());
  }
  const Line& stream = state.streams[static_cast<std::size_t>(op.stream)];
  if (!stream.is_head(where.operation)) {
    add(Reason::kStream, stream.head());
  }
  if (op.communicator != kNoCommunicator &&
      !state.queues[op.communicator].is_head(where.operation)) {
    add(Reason::kQueue, state.queues[op.communicator].head());
  }
  for (const std::uint32_t on : state.program->dependencies_of(op)) {
    if (!context_.launches(section_, where.class_index, on)) {
      add(Reason::kNeverLaunched, on);
    } else if (state.states[on] != State::kDone) {
      add(Reason::kDependency, on);
    }
  }
  if (state.states[where.operation] == State::kArrived) {
    add_partner_waits(where, waits);
  }
  return waits;
}

void Progress::add_partner_waits(const ClassOperation& where, std::vector<Wait>& waits) const {
  const Operation& op = operation(where);
  if (op.kind != OperationKind::kCollective) {
    const ClassOperation* partner = partner_of(where);
    waits.push_back(partner == nullptr ? Wait{Reason::kMissingPeer, {-1, 0}}
                                       : Wait{Reason::kPeer, *partner});
    return;
  }
  const ClassGroups& groups = context_.groups[op.communicator];
  const int group = groups.group_of_class[static_cast<std::size_t>(where.class_index)];
  for (const int member : groups.groups[static_cast<std::size_t>(group)]) {
    const ClassState& other = at(member);
    const Line& queue = other.queues[op.communicator];
    const auto next = std::find_if(
        queue.operations.begin() + static_cast<std::ptrdiff_t>(queue.done),
        queue.operations.end(),
        [&](std::uint32_t candidate) {
          return other.program->operations[candidate].kind == OperationKind::kCollective;
        });
    if (next == queue.operations.end()) {
      waits.push_back({Reason::kMissingMember, {member, 0}});
    } else if (other.states[*next] != State::kArrived) {
      waits.push_back({Reason::kMember, {member, *next}});
    }
  }
}

}  // namespace lockstep
