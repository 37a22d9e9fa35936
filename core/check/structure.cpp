// Rule "structure", operations: every index and enumerator in range, so that the other rules and
// the interpreters can index without asking; operands as many as the work takes. The tables they
// index are checked before, in structure_tables.cpp.

#include <string>

#include <fmt/format.h>

#include "core/check/operand_counts.h"
#include "core/check/plan_rules.h"
#include "core/check/ranges.h"
#include "core/model_graph.h"
#include "core/plan_text.h"

namespace lockstep {
namespace {

constexpr std::uint16_t kAllFlags = kInPlace | kHostSync | kControl | kAccumulate;

bool enumerators_in_range(const Operation& op) {
  return in_range(op.kind, OperationKind::kHost) && in_range(op.work, Work::kCommit) &&
         in_range(op.collective, Collective::kBarrier) && in_range(op.phase, Phase::kSave) &&
         in_range(op.stream, Stream::kHost) && in_range(op.reduction, Reduction::kAverage) &&
         in_range(op.dtype, DType::kUint8) && in_range(op.issue, Issue::kWhenReady) &&
         (op.flags & ~kAllFlags) == 0;
}

/// Faults of one operation. An empty text is no fault.
class OperationCheck {
 public:
  OperationCheck(const CheckContext& context, const Program& program, int class_index)
      : context_(context),
        plan_(context.plan),
        program_(program),
        buffers_(context.buffers(class_index)),
        class_index_(class_index) {}

  std::string index_fault(std::uint32_t index) const {
    const Operation& op = program_.operations[index];
    if (!enumerators_in_range(op)) {
      return "an enumerator is out of range";
    }
    std::string fault = array_fault(op, index);
    if (fault.empty()) {
      fault = table_fault(op);
    }
    return fault.empty() ? communication_fault(op) : fault;
  }

  /// What is wrong though all indices are right: the other rules can go on.
  static std::string operand_fault(const Program& program, const Operation& op) {
    if (!operand_counts(op).allows(op.inputs, op.outputs)) {
      return fmt::format("{} inputs and {} outputs", op.inputs, op.outputs);
    }
    const bool runs_work = op.kind == OperationKind::kCompute || op.kind == OperationKind::kHost;
    if (runs_work != (op.work != Work::kNone)) {
      return runs_work ? "runs no work" : fmt::format("runs work {}", name_of(op.work));
    }
    if ((op.kind == OperationKind::kHost) != (op.stream == Stream::kHost)) {
      return fmt::format("lies on stream {}", name_of(op.stream));
    }
    if (runs_work && op.has(kInPlace) && !is_in_place(program, op)) {
      return "is marked in place, but no output is an input";
    }
    return op.kind == OperationKind::kCollective ? reduction_fault(op) : std::string();
  }

 private:
  static bool is_in_place(const Program& program, const Operation& op) {
    for (const View& out : program.outputs_of(op)) {
      for (const View& in : program.inputs_of(op)) {
        if (in.buffer == out.buffer && in.offset == out.offset) {
          return true;
        }
      }
    }
    return false;
  }

  static std::string reduction_fault(const Operation& op) {
    const bool reduces = op.collective == Collective::kAllReduce ||
                         op.collective == Collective::kReduceScatter ||
                         op.collective == Collective::kReduce;
    return reduces == (op.reduction != Reduction::kNone)
               ? std::string()
               : fmt::format("has reduction {}", name_of(op.reduction));
  }

  std::string array_fault(const Operation& op, std::uint32_t index) const {
    const std::size_t last_view = std::size_t{op.first_view} + op.inputs + op.outputs;
    if (last_view > program_.views.size()) {
      return "its views lie outside the program's";
    }
    for (std::size_t i = op.first_view; i < last_view; ++i) {
      const View& view = program_.views[i];
      if (view.buffer >= buffers_.size()) {
        return fmt::format("names buffer {} of {}", view.buffer, buffers_.size());
      }
      if (!in_range(view.axis, Axis::kNone)) {
        return "a view names an axis that does not exist";
      }
      const int coordinates = view.axis == Axis::kNone ? 1 : plan_.mesh.size(view.axis);
      if (!is_small(view.offset) || !is_small(view.elements) ||
          !is_small(view.stride, kMaxElements / coordinates)) {
        return "a view is larger than any buffer";
      }
    }
    if (std::size_t{op.first_dependency} + op.dependencies > program_.dependencies.size()) {
      return "its dependencies lie outside the program's";
    }
    for (const std::uint32_t on : program_.dependencies_of(op)) {
      if (on == kNeverIssued && op.issue == Issue::kWhenReady) {
        continue;
      }
      if (on >= index) {
        return on == kNeverIssued ? std::string("waits for an operation that is never issued")
                                  : fmt::format("waits for the later operation #{}", on);
      }
    }
    return {};
  }

  std::string table_fault(const Operation& op) const {
    if (op.scalar != kNoScalar && op.scalar >= plan_.scalars.size()) {
      return fmt::format("scalar {} does not exist", op.scalar);
    }
    if (op.layout != kNoLayout && op.layout >= plan_.layouts.size()) {
      return fmt::format("layout {} does not exist", op.layout);
    }
    if (op.shape >= plan_.shapes.size()) {
      return fmt::format("shape {} does not exist", op.shape);
    }
    if (plan_.graph != nullptr && op.module != kNoModule &&
        op.module >= static_cast<std::uint32_t>(plan_.graph->module_count())) {
      return fmt::format("module {} does not exist", op.module);
    }
    if (op.microbatch < -1 || op.microbatch >= plan_.microbatches) {
      return fmt::format("micro-batch {} of {}", op.microbatch, plan_.microbatches);
    }
    const bool memory = op.kind == OperationKind::kAlloc || op.kind == OperationKind::kFree;
    if (memory ? op.buffer >= buffers_.size() : op.buffer != kNoBuffer) {
      return fmt::format("names buffer {} of {}", op.buffer, buffers_.size());
    }
    if (op.guard != kNoBuffer && op.guard >= buffers_.size()) {
      return fmt::format("guard buffer {} does not exist", op.guard);
    }
    return {};
  }

  std::string communication_fault(const Operation& op) const {
    const bool message = op.kind == OperationKind::kSend || op.kind == OperationKind::kRecv;
    const bool collective = op.kind == OperationKind::kCollective;
    if (!message && !collective) {
      return op.communicator == kNoCommunicator && op.peer == kNoPeer && op.root < 0
                 ? std::string()
                 : "names a communicator, a peer or a root";
    }
    if (op.communicator >= plan_.communicators.size()) {
      return fmt::format("communicator {} does not exist", op.communicator);
    }
    const ClassGroups& groups = context_.groups[op.communicator];
    if (groups.group_of_class[static_cast<std::size_t>(class_index_)] == ClassGroups::kNotMember) {
      return fmt::format("is not a member of communicator {}",
                         group_text(plan_.communicators[op.communicator]));
    }
    if (op.elements < 0 || !is_small(op.elements, kMaxElements / groups.members)) {
      return fmt::format("has {} elements", op.elements);
    }
    return message ? peer_fault(op) : root_fault(op, groups.members);
  }

  std::string peer_fault(const Operation& op) const {
    const Communicator& communicator = plan_.communicators[op.communicator];
    if ((communicator.axes & mask_of(Axis::kPipeline)) == 0) {
      return "its communicator does not span the pipeline";
    }
    if (class_at_stage(plan_, class_index_, op.peer) < 0 || !keeps_stage(communicator, op.peer)) {
      return fmt::format("peer stage {} does not exist or is not a member", op.peer);
    }
    if (op.peer == context_.coordinates[static_cast<std::size_t>(class_index_)][0]) {
      return "its peer is the same stage";
    }
    return {};
  }

  static std::string root_fault(const Operation& op, int members) {
    const bool rooted =
        op.collective == Collective::kBroadcast || op.collective == Collective::kReduce ||
        op.collective == Collective::kGather || op.collective == Collective::kScatter;
    if (rooted ? op.root < 0 || op.root >= members : op.root >= 0) {
      return fmt::format("root {} of {} members", op.root, members);
    }
    return {};
  }

  const CheckContext& context_;
  const Plan& plan_;
  const Program& program_;
  const std::vector<Buffer>& buffers_;
  int class_index_;
};

/// False when some index is out of range.
bool check_program(const CheckContext& context, int section, int class_index) {
  const Program& program = context.program(section, class_index);
  const OperationCheck check(context, program, class_index);
  bool good = true;
  for (std::uint32_t index = 0; index < program.operations.size(); ++index) {
    std::string fault = check.index_fault(index);
    if (!fault.empty()) {
      good = false;
    } else {
      fault = OperationCheck::operand_fault(program, program.operations[index]);
    }
    if (!fault.empty()) {
      context.report(PlanRule::kStructure, section, {class_index, index}, fault);
    }
  }
  return good;
}

}  // namespace

bool check_structure(CheckContext& context) {
  if (!check_tables(context)) {
    return false;
  }
  context.coordinates = coordinates_of_classes(context.plan);
  context.groups = class_groups(context.plan, context.coordinates);
  bool good = true;
  for (int section = 0; section < static_cast<int>(context.plan.sections.size()); ++section) {
    for (int index = 0; index < context.plan.class_count(); ++index) {
      good = check_program(context, section, index) && good;
    }
  }
  return good;
}

}  // namespace lockstep
