#include "core/check/value_machine.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/check.h"
#include "core/plan_text.h"

namespace lockstep {
namespace {

/// Tokens (or rows) of a micro-batch on one data-parallel rank, from the first batch that is
/// loaded. A process that has all ranks loads for all of them.
std::int64_t tokens_of(const Plan& plan) {
  const std::int64_t share = plan.host_shared ? plan.mesh.count(kDataAxes) : 1;
  for (const Section& section : plan.sections) {
    for (const Program& program : section.programs) {
      for (const Operation& op : program.operations) {
        if (op.work == Work::kLoadBatch && op.shape < plan.shapes.size()) {
          const Shape& shape = plan.shapes[op.shape];
          return shape.extent[0] * std::max<std::int64_t>(shape.extent[1], 1) / share;
        }
      }
    }
  }
  return 0;
}

}  // namespace

ValueMachine::ValueMachine(const Plan& plan, ValueHooks& hooks, const ValueMachineOptions& options)
    : plan_(plan), hooks_(hooks), options_(options), tokens_(tokens_of(plan)) {
  LOCKSTEP_CHECK(plan.graph != nullptr, "the value check needs the plan's model graph");
  LOCKSTEP_CHECK(plan.mesh.size(Axis::kContext) == 1,
                 "the value check does not know context parallelism");
  LOCKSTEP_CHECK(options.copies == 0 || plan.mesh.world_size() == 1,
                 "only a plan of one rank can be run in copies");
  places_.reserve(plan.buffers.size());
  for (const std::vector<Buffer>& buffers : plan.buffers) {
    places_.emplace_back(buffers);
  }
  make_ranks();
  make_groups();
  use_.resize(plan.sections.size());
  for (std::size_t s = 0; s < use_.size(); ++s) {
    for (const Program& program : plan.sections[s].programs) {
      use_[s].emplace_back(program.operations.size(), ValueUse::kNotRun);
    }
  }
}

void ValueMachine::make_ranks() {
  const int count = options_.copies > 0 ? options_.copies : plan_.mesh.world_size();
  for (int rank = 0; rank < count; ++rank) {
    const int like = options_.copies > 0 ? 0 : rank;
    const int class_index = plan_.class_of_rank(like);
    const ValuePlaces& places = places_[static_cast<std::size_t>(class_index)];
    Rank state(places, plan_.mesh, like);
    state.class_index = class_index;
    state.data = options_.copies > 0 ? rank : plan_.mesh.index(kDataAxes, rank);
    state.tensor_index = plan_.mesh.coordinate(like, Axis::kTensor);
    state.pipeline = plan_.mesh.coordinate(like, Axis::kPipeline);
    state.pending.assign(places.places.size(), 0);
    // One more than there are communicators: the sums of copies (ValueMachineOptions).
    state.posted.assign(plan_.communicators.size() + 1, 0);
    ranks_.push_back(std::move(state));
  }
}

void ValueMachine::make_groups() {
  group_index_.resize(plan_.communicators.size() + 1);
  for (std::size_t c = 0; c < group_index_.size(); ++c) {
    group_index_[c].assign(ranks_.size(), -1);
    const bool all_copies = c == plan_.communicators.size();
    for (int rank = 0; rank < rank_count(); ++rank) {
      if (group_index_[c][static_cast<std::size_t>(rank)] >= 0) {
        continue;
      }
      std::vector<int> group{rank};
      if (all_copies) {
        group.clear();
        for (int member = 0; member < rank_count(); ++member) {
          group.push_back(member);
        }
      } else if (options_.copies == 0) {
        group = members(plan_, plan_.communicators[c], rank);
      }
      for (const int member : group) {
        group_index_[c][static_cast<std::size_t>(member)] = static_cast<int>(groups_.size());
      }
      groups_.push_back({std::move(group), 0, {}});
    }
  }
}

bool ValueMachine::run(int section, int iteration, int microbatch) {
  section_ = section;
  iteration_ = iteration;
  microbatch_ = microbatch;
  start(section);
  bool progress = true;
  while (progress) {
    progress = false;
    for (int rank = 0; rank < rank_count(); ++rank) {
      progress = advance(rank) || progress;
      if (hooks_.enough()) {
        return false;
      }
    }
  }
  return finish();
}

void ValueMachine::start(int section) {
  const Section& programs = plan_.sections[static_cast<std::size_t>(section)];
  for (Rank& rank : ranks_) {
    rank.program = &programs.programs[static_cast<std::size_t>(rank.class_index)];
    rank.next = 0;
    rank.waiting = 0;
    std::fill(rank.pending.begin(), rank.pending.end(), std::uint16_t{0});
    std::fill(rank.posted.begin(), rank.posted.end(), 0U);
    rank.forward.clear();
    rank.recomputes = std::any_of(
        rank.program->operations.begin(), rank.program->operations.end(), [](const Operation& op) {
          return op.phase == Phase::kRecompute;
        });
  }
  for (Group& group : groups_) {
    group.first = 0;
    group.rounds.clear();
  }
  channels_.clear();
}

/// Runs the rank until it must wait. True when it did anything.
bool ValueMachine::advance(int rank) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  const std::vector<Operation>& operations = state.program->operations;
  const std::uint32_t first = state.next;
  while (state.next < operations.size()) {
    const Operation& op = operations[state.next];
    if (state.waiting > 0 && !ready(state, op)) {
      break;
    }
    execute({rank, section_, state.next, &op});
    ++state.next;
    ++operations_run_;
    if (hooks_.enough()) {
      break;
    }
  }
  return state.next != first;
}

bool ValueMachine::ready(const Rank& rank, const Operation& op) const {
  const ValuePlaces& places = places_[static_cast<std::size_t>(rank.class_index)];
  const auto busy = [&](std::uint32_t buffer) {
    return buffer != kNoBuffer && rank.pending[places.of(buffer).root] != 0;
  };
  if (busy(op.buffer) || busy(op.guard)) {
    return false;
  }
  for (int i = 0; i < op.inputs + op.outputs; ++i) {
    if (busy(rank.program->views[op.first_view + static_cast<std::uint32_t>(i)].buffer)) {
      return false;
    }
  }
  return true;
}

void ValueMachine::execute(const ValueSite& at) {
  ValueUse& use = use_of(at);
  if (use == ValueUse::kNotRun) {
    use = at.op->outputs > 0 ? ValueUse::kChangedNothing : ValueUse::kUseful;
  }
  guard(at);
  switch (at.op->kind) {
    case OperationKind::kCompute:
    case OperationKind::kHost:
      return work(at);
    case OperationKind::kCopy:
      return pack(at);
    case OperationKind::kCollective:
      return post(at);
    case OperationKind::kSend:
      return send(at);
    case OperationKind::kRecv:
      return receive(at);
    case OperationKind::kAlloc:
      rank_of(at).memory.forget(at.op->buffer);
      return;
    case OperationKind::kFree:
      return give_back(at);
  }
}

/// What is given back was good for something: even where nobody reads it (a weight gathered for the
/// backward of an embedding), it is what it claims to be.
void ValueMachine::give_back(const ValueSite& at) {
  const auto class_index = static_cast<std::size_t>(rank_of(at).class_index);
  const std::uint32_t id = at.op->buffer;
  if (places_[class_index].of(id).root != id) {
    return;  // borrowed memory stays
  }
  ValueMemory& memory = rank_of(at).memory;
  const Buffer& buffer = plan_.buffers[class_index][id];
  std::int64_t written = 0;
  for (const ValuePiece& piece : memory.raw(id)) {
    written += piece.elements;
  }
  const bool whole = buffer.category == Category::kGatheredParameter && buffer.parameter >= 0;
  if ((written == 0 && buffer.elements > 0) || (whole && written < buffer.elements)) {
    hooks_.problem(
        at,
        fmt::format(
            "only {} of {} elements were ever written to the buffer", written, buffer.elements));
  }
  if (buffer.category == Category::kGradient) {
    hooks_.released(at, memory.raw(id));
  }
  memory.forget(id);
}

bool ValueMachine::finish() {
  for (const Rank& rank : ranks_) {
    if (rank.next < rank.program->operations.size() || rank.waiting > 0) {
      report_stuck();
      return false;
    }
  }
  report_unread();
  report_beliefs();
  return true;
}

/// Names what each of the first ranks waits for.
void ValueMachine::report_stuck() {
  std::string text = "the ranks wait for each other:";
  int named = 0;
  ValueSite first;
  for (int rank = 0; rank < rank_count() && named < 4; ++rank) {
    const Rank& state = ranks_[static_cast<std::size_t>(rank)];
    const auto count = static_cast<std::uint32_t>(state.program->operations.size());
    if (state.next >= count && state.waiting == 0) {
      continue;
    }
    const std::uint32_t index = std::min(state.next, count - 1);
    if (named == 0) {
      first = {rank, section_, index, &state.program->operations[index]};
    }
    text += fmt::format("\n    rank {} ({} posted operations not complete) {} {}",
                        rank,
                        state.waiting,
                        state.next >= count ? "at the end, after" : "before",
                        describe(plan_, state.class_index, section_, index));
    ++named;
  }
  hooks_.problem(first, std::move(text));
}

}  // namespace lockstep
