// Communication of the value machine: collectives, sends and receives.
#include <algorithm>

#include <fmt/format.h>

#include "core/check/value_exchange.h"
#include "core/check/value_machine.h"
#include "core/plan_text.h"

namespace lockstep {

/// `more` operations (1 or -1) that will write the site's outputs are under way.
void ValueMachine::expect(const ValueSite& at, int more) {
  Rank& rank = rank_of(at);
  rank.waiting += more;
  for (const View& view : outputs(at)) {
    if (view.buffer == kNoBuffer) {
      continue;  // a member that receives nothing
    }
    std::uint16_t& count = rank.pending[rank.memory.root_of(view)];
    count = static_cast<std::uint16_t>(count + more);
  }
}

void ValueMachine::deliver(const ValueSite& at, const ValueSlab& slab) {
  for (const View& view : outputs(at)) {
    if (view.buffer != kNoBuffer) {
      write(at, view, slab);
    }
  }
}

// ---- collectives -------------------------------------------------------------------------------

void ValueMachine::post(const ValueSite& at) {
  const std::size_t communicator = at.op->communicator;
  if (communicator >= plan_.communicators.size() ||
      group_index_[communicator][static_cast<std::size_t>(at.rank)] < 0) {
    hooks_.problem(at, "the rank is not a member of the communicator");
    return;
  }
  const View none;
  join(communicator, at, at.op->inputs > 0 ? inputs(at).front() : none);
}

/// Puts the rank's message into its next round on the communicator; the last member completes it.
void ValueMachine::join(std::size_t communicator, const ValueSite& at, const View& input) {
  const int index = group_index_[communicator][static_cast<std::size_t>(at.rank)];
  Group& group = groups_[static_cast<std::size_t>(index)];
  const std::uint32_t number = rank_of(at).posted[communicator]++;
  while (group.rounds.size() <= number - group.first) {
    Group::Round& round = group.rounds.emplace_back();
    round.inputs.resize(group.members.size());
    round.sites.resize(group.members.size());
  }
  Group::Round& round = group.rounds[number - group.first];
  const auto member = std::find(group.members.begin(), group.members.end(), at.rank);
  const auto place = static_cast<std::size_t>(member - group.members.begin());
  if (input.buffer != kNoBuffer) {
    rank_of(at).memory.read(input, round.inputs[place]);
  }
  round.sites[place] = at;
  if (!beliefs_.empty()) {
    exchange_beliefs(at, round.inputs[place], group.members.size());
  }
  expect(at, 1);
  if (++round.arrived == group.members.size()) {
    complete(group);
  }
}

void ValueMachine::exchange_beliefs(const ValueSite& at,
                                    const ValueSlab& message,
                                    std::size_t members) {
  for (const ValuePiece& piece : message) {
    const auto found = beliefs_.find(piece.symbol.number);
    if (found == beliefs_.end() || members < 2) {
      continue;
    }
    found->second.exchanged = true;
    if (found->second.summed) {
      hooks_.problem(at, "sums what is the sum over the ranks already");
    }
  }
}

bool ValueMachine::agree(const Group::Round& round) {
  const Operation& first = *round.sites.front().op;
  for (const ValueSite& at : round.sites) {
    const Operation& op = *at.op;
    if (op.kind != first.kind || op.collective != first.collective ||
        op.reduction != first.reduction || op.elements != first.elements || op.root != first.root) {
      hooks_.problem(at,
                     fmt::format("does not match what rank {} issued: {}",
                                 round.sites.front().rank,
                                 operation_text(plan_, class_of(round.sites.front().rank), first)));
      return false;
    }
  }
  return true;
}

/// Members post in order, so the round that is complete is the oldest one.
void ValueMachine::complete(Group& group) {
  Group::Round round = std::move(group.rounds.front());
  group.rounds.pop_front();
  ++group.first;
  for (const ValueSite& at : round.sites) {
    expect(at, -1);
  }
  if (!agree(round)) {
    return;
  }
  const Operation* op = round.sites.front().op;
  Operation sum;
  if (op->kind != OperationKind::kCollective) {  // sums of copies
    sum.collective = Collective::kAllReduce;
    sum.reduction = Reduction::kSum;
    op = &sum;
  }
  ExchangeResult result;
  exchange(
      *op,
      round.inputs,
      [this](field::Number a, field::Number b) { return hooks_.merge_flags(a, b); },
      result);
  if (op->reduction == Reduction::kSum && !beliefs_.empty() && !result.outputs[0].empty() &&
      beliefs_.count(round.inputs[0].front().symbol.number) != 0) {
    beliefs_[result.outputs[0].front().symbol.number] = {round.sites.front(), true, true};
  }
  for (std::size_t i = 0; i < round.sites.size(); ++i) {
    if (result.receives[i] != 0) {
      deliver(round.sites[i], result.outputs[i]);
    }
  }
  // What one member needs of the others is useful on all of them.
  const bool useful = std::any_of(round.sites.begin(), round.sites.end(), [&](const ValueSite& at) {
    return use_of(at) == ValueUse::kUseful;
  });
  for (const ValueSite& at : round.sites) {
    use_of(at) = useful ? ValueUse::kUseful : use_of(at);
  }
}

// ---- sends and receives ------------------------------------------------------------------------

ValueMachine::Channel& ValueMachine::channel(int source, int destination, std::uint32_t tag) {
  const auto ranks = static_cast<std::uint64_t>(ranks_.size());
  const std::uint64_t pair =
      static_cast<std::uint64_t>(source) * ranks + static_cast<std::uint64_t>(destination);
  return channels_[(pair << 32U) | tag];
}

void ValueMachine::send(const ValueSite& at) {
  const int destination = plan_.mesh.with(at.rank, Axis::kPipeline, at.op->peer);
  Channel& to = channel(at.rank, destination, at.op->tag);
  ValueSlab message;
  rank_of(at).memory.read(inputs(at).front(), message);
  if (to.receivers.empty()) {
    to.messages.push_back(std::move(message));
    to.senders.push_back(at);
    return;
  }
  const ValueSite receiver = to.receivers.front();
  to.receivers.pop_front();
  expect(receiver, -1);
  deliver(receiver, message);
}

void ValueMachine::receive(const ValueSite& at) {
  const int source = plan_.mesh.with(at.rank, Axis::kPipeline, at.op->peer);
  Channel& from = channel(source, at.rank, at.op->tag);
  if (from.messages.empty()) {
    from.receivers.push_back(at);
    expect(at, 1);
    return;
  }
  deliver(at, from.messages.front());
  from.messages.pop_front();
  from.senders.pop_front();
}

void ValueMachine::report_unread() {
  // By rank and index: the map has no order.
  const ValueSite* first = nullptr;
  for (const auto& [key, unread] : channels_) {
    for (const ValueSite& at : unread.senders) {
      if (first == nullptr || std::pair(at.rank, at.index) < std::pair(first->rank, first->index)) {
        first = &at;
      }
    }
  }
  if (first != nullptr) {
    hooks_.problem(*first, "nobody receives the message");
  }
}

void ValueMachine::report_beliefs() {
  const ValueSite* first = nullptr;
  for (const auto& [number, belief] : beliefs_) {
    const ValueSite& at = belief.site;
    if (!belief.exchanged &&
        (first == nullptr || std::pair(at.rank, at.index) < std::pair(first->rank, first->index))) {
      first = &at;
    }
  }
  if (first != nullptr) {
    hooks_.problem(*first, "other ranks never learn what this one has");
  }
  beliefs_.clear();
}

}  // namespace lockstep
