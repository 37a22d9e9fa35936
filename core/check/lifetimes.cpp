// Rules "lifetime", "unwritten" and "guard": what holds at an operation depends on all that ran
// before it, so each class's sections are walked in the order of execution: init, the iterations up
// to the steady one, then evaluate and save from there. A section is walked again only when its
// buffers start in another state than before.

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "core/check/flag_agreement.h"
#include "core/check/plan_rules.h"
#include "core/plan_text.h"

namespace lockstep {
namespace {

constexpr int kStorageCount = 3;
using HeldBytes = std::array<std::array<std::int64_t, kCategoryCount>, kStorageCount>;

/// What the rules need to know of a buffer; of an alias, `written` and `agreement` are its
/// lender's.
struct BufferState {
  bool live = false;
  bool was_live = false;
  bool written = false;
  FlagAgreement agreement;
  bool operator==(const BufferState&) const = default;
};

struct Place {
  int section = -1;
  std::uint32_t operation = 0;
};

class LifetimeWalk {
 public:
  LifetimeWalk(const CheckContext& context, int class_index)
      : context_(context),
        plan_(context.plan),
        class_(class_index),
        buffers_(context.buffers(class_index)),
        states_(buffers_.size()),
        begun_(buffers_.size()),
        ended_(buffers_.size()),
        aliases_(buffers_.size()),
        walked_(plan_.sections.size()) {
    for (std::uint32_t id = 0; id < buffers_.size(); ++id) {
      if (buffers_[id].alias_of != kNoBuffer) {
        aliases_[buffers_[id].alias_of].push_back(id);
      }
    }
  }

  void run() {
    walk_kind(SectionKind::kInit);
    // One iteration more than there are variants: what the last one leaves must suit itself.
    const std::size_t variants = plan_.variant_of_iteration.size();
    const std::size_t iterations = variants == 0 ? 0 : std::max<std::size_t>(variants, 3) + 1;
    for (std::size_t iteration = 0; iteration < iterations; ++iteration) {
      const Section& section = plan_.step(static_cast<int>(iteration));
      walk(static_cast<int>(&section - plan_.sections.data()), iteration >= 2);
    }
    walk_kind(SectionKind::kEvaluate);
    walk_kind(SectionKind::kSave);
  }

 private:
  struct Walked {
    std::vector<BufferState> before;
    std::vector<BufferState> after;
    HeldBytes change{};
  };

  void walk_kind(SectionKind kind) {
    const Section* section = plan_.find(kind);
    if (section != nullptr) {
      walk(static_cast<int>(section - plan_.sections.data()), kind != SectionKind::kInit);
    }
  }

  /// `steady`: the section must leave memory as it found it.
  void walk(int section, bool steady) {
    std::optional<Walked>& walked = walked_[static_cast<std::size_t>(section)];
    if (!walked.has_value() || walked->before != states_) {
      walked.emplace();
      walked->before = states_;
      section_ = section;
      change_ = {};
      const Program& program = context_.program(section, class_);
      for (index_ = 0; index_ < program.operations.size(); ++index_) {
        if (context_.launches(section, class_, index_)) {
          visit(program, program.operations[index_]);
        }
      }
      end_section();
      walked->after = states_;
      walked->change = change_;
    }
    states_ = walked->after;
    if (steady) {
      check_change(section, walked->change);
    }
  }

  void visit(const Program& program, const Operation& op) {
    if (op.guard != kNoBuffer) {
      check_guard(op);
    }
    if (op.kind == OperationKind::kAlloc) {
      begin(op.buffer);
      return;
    }
    if (op.kind == OperationKind::kFree) {
      end(op.buffer);
      return;
    }
    for (const View& view : program.inputs_of(op)) {
      use(view, true);
    }
    const std::span<const View> outputs = program.outputs_of(op);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      use(outputs[i], accumulates(op, static_cast<int>(i)));
    }
    for (const View& view : outputs) {
      write(program, op, view);
    }
  }

  void begin(std::uint32_t id) {
    BufferState& state = states_[id];
    const Buffer& buffer = buffers_[id];
    if (state.live) {
      report(PlanRule::kLifetime, fmt::format("is allocated already, {}", text(begun_[id])));
      return;
    }
    if (buffer.lifetime == Lifetime::kPersistent && state.was_live) {
      report(PlanRule::kLifetime,
             fmt::format("is persistent, but was allocated before, {}", text(begun_[id])));
    }
    if (buffer.alias_of != kNoBuffer && !states_[buffer.alias_of].live) {
      report(PlanRule::kLifetime,
             fmt::format("its lender, buffer {}, is not allocated", buffer.alias_of));
    }
    state.live = true;
    state.was_live = true;
    state.written = false;
    state.agreement = {};
    begun_[id] = {section_, index_};
    held(buffer) += buffer.bytes();
  }

  void end(std::uint32_t id) {
    BufferState& state = states_[id];
    if (!state.live) {
      report(PlanRule::kLifetime, not_live(id));
      return;
    }
    for (const std::uint32_t alias : aliases_[id]) {
      if (states_[alias].live) {
        report(PlanRule::kLifetime, fmt::format("its alias, buffer {}, is still in use", alias));
      }
    }
    state.live = false;
    ended_[id] = {section_, index_};
    held(buffers_[id]) -= buffers_[id].bytes();
  }

  void use(const View& view, bool reads) {
    if (!states_[view.buffer].live) {
      report(PlanRule::kLifetime, fmt::format("buffer {} {}", view.buffer, not_live(view.buffer)));
    } else if (reads && view.elements > 0 && !states_[lender_of(view.buffer)].written) {
      report(PlanRule::kUnwritten,
             fmt::format("reads {}, which nothing has written", buffer_text(view.buffer)));
    }
  }

  void write(const Program& program, const Operation& op, const View& view) {
    BufferState& state = states_[lender_of(view.buffer)];
    state.written = true;
    const bool agrees = op.kind == OperationKind::kCollective &&
                        op.collective == Collective::kAllReduce &&
                        op.reduction == Reduction::kMax && op.inputs > 0;
    if (!agrees) {
      state.agreement = {};
      return;
    }
    state.agreement = states_[lender_of(program.inputs_of(op).front().buffer)].agreement;
    state.agreement.reduce(plan_.communicators[op.communicator]);
  }

  void check_guard(const Operation& op) {
    if (op.kind == OperationKind::kAlloc || op.kind == OperationKind::kFree) {
      report(PlanRule::kGuard, "memory cannot depend on a flag");
      return;
    }
    if (!states_[op.guard].live) {
      report(PlanRule::kGuard,
             fmt::format("its flag, buffer {}, {}", op.guard, not_live(op.guard)));
      return;
    }
    const BufferState& state = states_[lender_of(op.guard)];
    if (!state.written) {
      report(PlanRule::kGuard, fmt::format("its flag, buffer {}, was never written", op.guard));
    }
    if (op.communicator != kNoCommunicator &&
        !state.agreement.covers(plan_.mesh, plan_.communicators[op.communicator])) {
      report(
          PlanRule::kGuard,
          fmt::format("members of {} may differ in whether they skip it: its flag, buffer {}, was "
                      "reduced (max) over {}",
                      group_text(plan_.communicators[op.communicator]),
                      op.guard,
                      reduced_over(state.agreement)));
    }
  }

  /// Step buffers end with their section.
  void end_section() {
    for (std::uint32_t id = 0; id < buffers_.size(); ++id) {
      if (states_[id].live && buffers_[id].lifetime == Lifetime::kStep) {
        context_.report(PlanRule::kLifetime,
                        begun_[id].section,
                        {class_, begun_[id].operation},
                        "is not freed in its section");
        states_[id].live = false;
        held(buffers_[id]) -= buffers_[id].bytes();
      }
    }
  }

  void check_change(int section, const HeldBytes& change) {
    for (std::size_t storage = 0; storage < change.size(); ++storage) {
      for (std::size_t category = 0; category < change[storage].size(); ++category) {
        const std::int64_t bytes = change[storage][category];
        if (bytes != 0) {
          context_.problems.add(
              {PlanRule::kLifetime,
               fmt::format("rank class {} {} ends with {} {} bytes of {} than it began with",
                           class_,
                           section_text(plan_, section),
                           bytes < 0 ? -bytes : bytes,
                           bytes < 0 ? "fewer" : "more",
                           name_of(static_cast<Category>(category))),
               class_,
               section,
               -1});
        }
      }
    }
  }

  std::uint32_t lender_of(std::uint32_t id) const {
    return buffers_[id].alias_of == kNoBuffer ? id : buffers_[id].alias_of;
  }

  std::int64_t& held(const Buffer& buffer) {
    return change_[static_cast<std::size_t>(buffer.storage)]
                  [static_cast<std::size_t>(buffer.category)];
  }

  static std::string reduced_over(const FlagAgreement& agreement) {
    return agreement.axes == 0 ? "nothing"
                               : group_text({agreement.axes, agreement.stages, false}) + " only";
  }

  std::string not_live(std::uint32_t id) const {
    return states_[id].was_live ? fmt::format("was freed, {}", text(ended_[id]))
                                : std::string("is not allocated");
  }

  std::string text(const Place& place) const {
    return fmt::format("{} #{}", section_text(plan_, place.section), place.operation);
  }

  std::string buffer_text(std::uint32_t id) const {
    return fmt::format("buffer {} ({} {} {})",
                       id,
                       name_of(buffers_[id].category),
                       buffers_[id].elements,
                       name_of(buffers_[id].dtype));
  }

  void report(PlanRule rule, const std::string& message) const {
    context_.report(rule, section_, {class_, index_}, message);
  }

  const CheckContext& context_;
  const Plan& plan_;
  int class_;
  const std::vector<Buffer>& buffers_;
  std::vector<BufferState> states_;
  std::vector<Place> begun_;
  std::vector<Place> ended_;
  std::vector<std::vector<std::uint32_t>> aliases_;
  std::vector<std::optional<Walked>> walked_;
  HeldBytes change_{};
  int section_ = -1;
  std::uint32_t index_ = 0;
};

}  // namespace

bool accumulates(const Operation& op, int output) {
  switch (op.work) {
    case Work::kLossFinish:
    case Work::kSumSquares:
    case Work::kUnscaleAndCheck:
      return output == 0;  // loss, sum and flag are added to (core/operands.h: "+=")
    case Work::kNormGrad:
    case Work::kBnGradApply:
    case Work::kCombineGrad:
      return op.has(kAccumulate) && output > 0;  // output 0 is the gradient of the input
    default:
      return op.has(kAccumulate);
  }
}

void check_lifetimes(const CheckContext& context) {
  for (int index = 0; index < context.plan.class_count(); ++index) {
    LifetimeWalk(context, index).run();
  }
}

}  // namespace lockstep
