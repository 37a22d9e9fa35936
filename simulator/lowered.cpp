#include "simulator/lowered.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"

namespace lockstep::sim {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

/// A sum of a billion seconds of operations still fits into the clock.
Nanoseconds nanoseconds(double seconds) {
  if (!(seconds >= 0 && seconds < 1e6)) {
    throw NotSupportedError(
        "simulator",
        fmt::format("an operation would take {:g} s; the cluster's rates are too low", seconds));
  }
  return static_cast<Nanoseconds>(std::llround(seconds * 1e9));
}

bool of_model(Phase phase) {
  return phase == Phase::kForward || phase == Phase::kRecompute || phase == Phase::kBackward ||
         phase == Phase::kBackwardInput || phase == Phase::kBackwardWeight ||
         phase == Phase::kEvaluate;
}

/// Lowers one program.
class ProgramLowerer {
 public:
  ProgramLowerer(const Program& program, std::size_t communicators, Prices& prices)
      : program_(program), prices_(prices), last_on_(communicators, kNone) {}

  LoweredProgram lower() {
    index_.assign(program_.operations.size(), kNone);
    result_.operations.reserve(program_.operations.size());
    for (std::uint32_t i = 0; i < program_.operations.size(); ++i) {
      if (takes_place(program_.operations[i])) {
        index_[i] = static_cast<std::uint32_t>(result_.operations.size());
        add(program_.operations[i], i);
      }
    }
    return std::move(result_);
  }

 private:
  void add(const Operation& op, std::uint32_t operation) {
    LoweredOperation lowered;
    lowered.operation = operation;
    lowered.price = prices_.add(op);
    lowered.peer = op.peer;
    lowered.kind = op.kind;
    lowered.queue = numbering_.of(op);
    lowered.communicator = op.communicator;
    lowered.host_sync = op.has(kHostSync) || op.kind == OperationKind::kHost;
    lowered.guarded = op.guard != kNoBuffer;
    lowered.of_model = of_model(op.phase);
    lowered.first_dependency = static_cast<std::uint32_t>(result_.dependencies.size());
    for (const std::uint32_t on : program_.dependencies_of(op)) {
      depend(index_[on], lowered.queue);
    }
    if (op.kind == OperationKind::kCollective) {  // a communicator is a queue too
      depend(last_on_[op.communicator], lowered.queue);
      last_on_[op.communicator] = index_[operation];
    }
    lowered.dependencies =
        static_cast<std::uint16_t>(result_.dependencies.size() - lowered.first_dependency);
    result_.queues[lowered.queue].push_back(index_[operation]);
    result_.operations.push_back(lowered);
  }

  /// An earlier operation of the same queue has ended anyway.
  void depend(std::uint32_t on, std::uint8_t queue) {
    if (on != kNone && result_.operations[on].queue != queue) {
      result_.dependencies.push_back(on);
    }
  }

  QueueNumbering numbering_;
  const Program& program_;
  Prices& prices_;
  std::vector<std::uint32_t> index_;    ///< plan operation -> lowered operation
  std::vector<std::uint32_t> last_on_;  ///< by communicator
  LoweredProgram result_;
};

/// One end of a message. Ends of one message are equal in all but the operation.
struct MessageEnd {
  int source = 0;       ///< plan class
  int destination = 0;  ///< plan class
  std::uint32_t tag = 0;
  std::uint32_t operation = 0;  ///< ascending: the k-th send meets the k-th recv
  auto key() const { return std::tie(source, destination, tag); }
  auto operator<=>(const MessageEnd&) const = default;
};

/// The first rank of a plan class.
std::vector<int> first_ranks(const Plan& plan) {
  std::vector<int> first(static_cast<std::size_t>(plan.class_count()), -1);
  for (int rank = plan.mesh.world_size() - 1; rank >= 0; --rank) {
    first[static_cast<std::size_t>(plan.class_of_rank(rank))] = rank;
  }
  return first;
}

void find_partners(const Plan& plan, int section, std::vector<LoweredProgram>& programs) {
  std::vector<MessageEnd> sends;
  std::vector<MessageEnd> recvs;
  const std::vector<int> first = first_ranks(plan);
  const Section& planned = plan.sections[static_cast<std::size_t>(section)];
  for (int index = 0; index < plan.class_count(); ++index) {
    const auto at = static_cast<std::size_t>(index);
    for (std::uint32_t i = 0; i < programs[at].operations.size(); ++i) {
      const LoweredOperation& op = programs[at].operations[i];
      if (op.peer == kNoPeer) {
        continue;
      }
      const int peer = plan.class_of_rank(plan.mesh.with(first[at], Axis::kPipeline, op.peer));
      const std::uint32_t tag = planned.programs[at].operations[op.operation].tag;
      if (op.kind == OperationKind::kSend) {
        sends.push_back({index, peer, tag, i});
      } else {
        recvs.push_back({peer, index, tag, i});
      }
    }
  }
  std::sort(sends.begin(), sends.end());
  std::sort(recvs.begin(), recvs.end());
  LOCKSTEP_CHECK(sends.size() == recvs.size(), "every send has its recv");
  for (std::size_t i = 0; i < sends.size(); ++i) {
    LOCKSTEP_CHECK(sends[i].key() == recvs[i].key(), "every send has its recv");
    const auto source = static_cast<std::size_t>(sends[i].source);
    const auto destination = static_cast<std::size_t>(sends[i].destination);
    programs[source].operations[sends[i].operation].partner = recvs[i].operation;
    programs[destination].operations[recvs[i].operation].partner = sends[i].operation;
  }
}

}  // namespace

std::uint64_t Prices::hash_of(const Entry& entry) {
  std::uint64_t hash = static_cast<std::uint64_t>(entry.kind) << 56U;
  hash ^= static_cast<std::uint64_t>(entry.work) << 48U;
  hash ^= static_cast<std::uint64_t>(entry.collective) << 44U;
  hash ^= static_cast<std::uint64_t>(entry.dtype) << 40U;
  hash ^= entry.shape;
  hash ^= static_cast<std::uint64_t>(entry.elements) * 0x9e3779b97f4a7c15U;
  hash *= 0xff51afd7ed558ccdU;
  return hash ^ (hash >> 32U);
}

PriceKey Prices::key_of(const Entry& entry) const {
  return {entry.kind,
          entry.work,
          entry.collective,
          entry.dtype,
          plan_.shapes[entry.shape],
          entry.elements};
}

std::uint32_t Prices::add(const Operation& op) {
  if (entries_.size() * 2 >= table_.size()) {
    grow();
  }
  const Entry entry{op.kind, op.work, op.collective, op.dtype, op.shape, op.elements};
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = hash_of(entry) & mask;
  for (; table_[slot] != kNone; slot = (slot + 1) & mask) {
    if (entries_[table_[slot]] == entry) {
      return table_[slot];
    }
  }
  const auto price = static_cast<std::uint32_t>(entries_.size());
  table_[slot] = price;
  entries_.push_back(entry);
  const bool has_group = op.communicator != kNoCommunicator;
  durations_.push_back(has_group ? 0 : nanoseconds(costs_.seconds(key_of(entry))));
  return price;
}

void Prices::grow() {
  table_.assign(std::max<std::size_t>(256, table_.size() * 2), kNone);
  const std::size_t mask = table_.size() - 1;
  for (std::uint32_t price = 0; price < entries_.size(); ++price) {
    std::size_t slot = hash_of(entries_[price]) & mask;
    while (table_[slot] != kNone) {
      slot = (slot + 1) & mask;
    }
    table_[slot] = price;
  }
}

Nanoseconds Prices::duration(std::uint32_t price,
                             std::int32_t placement,
                             std::span<const GroupPlacement> placements) {
  if (by_placement_.size() < placements.size()) {
    by_placement_.resize(placements.size());
  }
  std::vector<Nanoseconds>& known = by_placement_[static_cast<std::size_t>(placement)];
  if (known.size() < entries_.size()) {
    known.resize(entries_.size(), -1);
  }
  Nanoseconds& duration = known[price];
  if (duration < 0) {
    duration = nanoseconds(
        costs_.seconds(key_of(entries_[price]), placements[static_cast<std::size_t>(placement)]));
  }
  return duration;
}

Lowered lower(const Plan& plan, const CostModel& costs, int section) {
  Lowered lowered{{}, Prices(plan, costs), 0};
  for (const Program& program : plan.sections[static_cast<std::size_t>(section)].programs) {
    lowered.operations += static_cast<std::int64_t>(program.operations.size());
    lowered.programs.push_back(
        ProgramLowerer(program, plan.communicators.size(), lowered.prices).lower());
  }
  find_partners(plan, section, lowered.programs);
  return lowered;
}

}  // namespace lockstep::sim
