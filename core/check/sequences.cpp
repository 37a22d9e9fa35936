// Rule "sequence": the members of a group issue the same collectives in the same order.
//
// Every class's sequence on a communicator is hashed once; only where hashes of one group differ
// are the sequences written out to find the first difference.

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "core/check/plan_rules.h"
#include "core/plan_text.h"

namespace lockstep {
namespace {

struct SequenceHash {
  std::uint64_t hash = 0;
  std::int64_t count = 0;
  bool operator==(const SequenceHash&) const = default;
};

void mix(SequenceHash& sequence, std::uint64_t value) {
  // The finaliser of MurmurHash3 spreads every bit; a difference anywhere changes the result.
  std::uint64_t h = sequence.hash ^ (value + 0x9e3779b97f4a7c15ULL);
  h = (h ^ (h >> 33U)) * 0xff51afd7ed558ccdULL;
  h = (h ^ (h >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
  sequence.hash = h ^ (h >> 33U);
}

/// What must agree: all fields that shape the exchange, and whether a flag can skip it.
bool agree(const Operation& a, const Operation& b) {
  return a.collective == b.collective && a.elements == b.elements && a.dtype == b.dtype &&
         a.reduction == b.reduction && a.root == b.root && a.has(kControl) == b.has(kControl) &&
         (a.guard == kNoBuffer) == (b.guard == kNoBuffer);
}

void mix(SequenceHash& sequence, const Operation& op) {
  const std::uint64_t small =
      static_cast<std::uint64_t>(op.collective) | static_cast<std::uint64_t>(op.dtype) << 8U |
      static_cast<std::uint64_t>(op.reduction) << 16U |
      static_cast<std::uint64_t>(op.has(kControl)) << 24U |
      static_cast<std::uint64_t>(op.guard == kNoBuffer) << 25U |
      static_cast<std::uint64_t>(static_cast<std::uint16_t>(op.root)) << 32U;
  mix(sequence, small);
  mix(sequence, static_cast<std::uint64_t>(op.elements));
  ++sequence.count;
}

std::vector<SequenceHash> hashes_of(const CheckContext& context, int section, int class_index) {
  std::vector<SequenceHash> result(context.plan.communicators.size());
  const Program& program = context.program(section, class_index);
  for (std::uint32_t index = 0; index < program.operations.size(); ++index) {
    const Operation& op = program.operations[index];
    if (op.kind == OperationKind::kCollective && context.launches(section, class_index, index)) {
      mix(result[op.communicator], op);
    }
  }
  return result;
}

std::vector<std::uint32_t> sequence_of(const CheckContext& context,
                                       int section,
                                       int class_index,
                                       std::size_t communicator) {
  std::vector<std::uint32_t> result;
  const Program& program = context.program(section, class_index);
  for (std::uint32_t index = 0; index < program.operations.size(); ++index) {
    const Operation& op = program.operations[index];
    if (op.kind == OperationKind::kCollective && op.communicator == communicator &&
        context.launches(section, class_index, index)) {
      result.push_back(index);
    }
  }
  return result;
}

/// Reports the first place where the sequences of two classes of one group differ.
class Difference {
 public:
  Difference(const CheckContext& context, int section, std::size_t communicator)
      : context_(context), plan_(context.plan), section_(section), communicator_(communicator) {}

  void report(int a, int b) const {
    const std::vector<std::uint32_t> ours = sequence_of(context_, section_, a, communicator_);
    const std::vector<std::uint32_t> theirs = sequence_of(context_, section_, b, communicator_);
    const std::size_t common = std::min(ours.size(), theirs.size());
    std::size_t place = 0;
    while (place < common && agree(operation(a, ours[place]), operation(b, theirs[place]))) {
      ++place;
    }
    const int rank = rank_of_class(plan_, a);
    const Communicator& group = plan_.communicators[communicator_];
    PlanProblem problem{PlanRule::kSequence, {}, a, section_, -1};
    problem.message =
        fmt::format("communicator {}, {}, collective {}: rank {} issues {}, but rank {} issues {}",
                    group_text(group) + (group.control ? " (control)" : ""),
                    section_text(plan_, section_),
                    place,
                    rank,
                    text_at(a, ours, place),
                    rank_in_group(plan_, group, rank, b),
                    text_at(b, theirs, place));
    if (place < ours.size()) {
      problem.operation = ours[place];
    }
    context_.problems.add(std::move(problem));
  }

 private:
  const Operation& operation(int class_index, std::uint32_t index) const {
    return context_.program(section_, class_index).operations[index];
  }

  std::string text_at(int class_index,
                      const std::vector<std::uint32_t>& sequence,
                      std::size_t place) const {
    if (place >= sequence.size()) {
      return fmt::format("no more than {}", sequence.size());
    }
    const Operation& op = operation(class_index, sequence[place]);
    return fmt::format("#{} {}{}",
                       sequence[place],
                       operation_text(plan_, class_index, op),
                       op.guard == kNoBuffer ? "" : ", guarded");
  }

  const CheckContext& context_;
  const Plan& plan_;
  int section_;
  std::size_t communicator_;
};

void check_section(const CheckContext& context, int section) {
  std::vector<std::vector<SequenceHash>> hashes;
  hashes.reserve(static_cast<std::size_t>(context.plan.class_count()));
  for (int index = 0; index < context.plan.class_count(); ++index) {
    hashes.push_back(hashes_of(context, section, index));
  }
  for (std::size_t communicator = 0; communicator < context.groups.size(); ++communicator) {
    const Difference difference(context, section, communicator);
    for (const std::vector<int>& group : context.groups[communicator].groups) {
      for (std::size_t i = 1; i < group.size(); ++i) {
        const auto first = static_cast<std::size_t>(group.front());
        if (hashes[first][communicator] !=
            hashes[static_cast<std::size_t>(group[i])][communicator]) {
          difference.report(group.front(), group[i]);
        }
      }
    }
  }
}

}  // namespace

void check_sequences(const CheckContext& context) {
  for (int section = 0; section < static_cast<int>(context.plan.sections.size()); ++section) {
    check_section(context, section);
  }
}

}  // namespace lockstep
