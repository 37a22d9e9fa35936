// Rule "bounds": views inside their buffers for every coordinate that a rank of the class can have,
// and messages as long and of the type that their operation declares.

#include <algorithm>

#include <fmt/format.h>

#include "core/check/plan_rules.h"

namespace lockstep {
namespace {

std::string view_fault(const CheckContext& context, int class_index, const View& view) {
  const Buffer& buffer = context.buffers(class_index)[view.buffer];
  const CoordinateRange range = coordinate_range(
      context.plan, context.coordinates[static_cast<std::size_t>(class_index)], view.axis);
  const std::int64_t near = view.offset + range.first * view.stride;
  const std::int64_t far = view.offset + range.last * view.stride;
  const std::int64_t begin = std::min(near, far);
  const std::int64_t end = std::max(near, far) + view.elements;
  if (view.elements >= 0 && begin >= 0 && end <= buffer.elements) {
    return {};
  }
  return fmt::format("view [{}, {}) lies outside buffer {} of {} elements",
                     begin,
                     end,
                     view.buffer,
                     buffer.elements);
}

std::int64_t elements_of(std::span<const View> views) {
  std::int64_t sum = 0;
  for (const View& view : views) {
    sum += view.elements;
  }
  return sum;
}

std::string dtype_fault(const std::vector<Buffer>& buffers,
                        std::span<const View> views,
                        DType dtype) {
  for (const View& view : views) {
    if (buffers[view.buffer].dtype != dtype) {
      return fmt::format("buffer {} is {}, the message {}",
                         view.buffer,
                         name_of(buffers[view.buffer].dtype),
                         name_of(dtype));
    }
  }
  return {};
}

/// Elements that a member has on the input (or output) side of a collective.
std::int64_t expected_elements(const Operation& op, int members, bool input) {
  switch (op.collective) {
    case Collective::kAllGather:
    case Collective::kGather:
      return input ? op.elements : op.elements * members;
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return input ? op.elements * members : op.elements;
    case Collective::kAllReduce:
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kAllToAll:
    case Collective::kBarrier:
      break;
  }
  return op.elements;
}

std::string count_fault(const Operation& op, std::span<const View> views, int members, bool input) {
  // A rooted collective may leave a side of the other members empty.
  if (views.empty() && (op.collective == Collective::kBarrier || op.root >= 0)) {
    return {};
  }
  const std::int64_t expected = expected_elements(op, members, input);
  const std::int64_t actual = elements_of(views);
  return actual == expected ? std::string()
                            : fmt::format("{} has {} elements instead of {} ({} members)",
                                          input ? "input" : "output",
                                          actual,
                                          expected,
                                          members);
}

std::string collective_fault(const CheckContext& context,
                             const Operation& op,
                             std::span<const View> inputs,
                             std::span<const View> outputs) {
  const int members = context.groups[op.communicator].members;
  const std::string fault = count_fault(op, inputs, members, true);
  return fault.empty() ? count_fault(op, outputs, members, false) : fault;
}

std::string message_fault(const Operation& op, std::span<const View> views) {
  const std::int64_t actual = elements_of(views);
  return actual == op.elements
             ? std::string()
             : fmt::format("its view has {} elements, the message {}", actual, op.elements);
}

std::string copy_fault(std::span<const View> inputs, std::span<const View> outputs) {
  const std::int64_t from = elements_of(inputs);
  const std::int64_t to = elements_of(outputs);
  return from == to ? std::string() : fmt::format("copies {} elements to {}", from, to);
}

std::string fault_of(const CheckContext& context,
                     const Program& program,
                     const Operation& op,
                     int class_index) {
  const std::span<const View> inputs = program.inputs_of(op);
  const std::span<const View> outputs = program.outputs_of(op);
  const std::span<const View> all{inputs.data(), inputs.size() + outputs.size()};
  for (const View& view : all) {
    std::string fault = view_fault(context, class_index, view);
    if (!fault.empty()) {
      return fault;
    }
  }
  std::string fault;
  if (op.kind == OperationKind::kCopy) {
    return copy_fault(inputs, outputs);
  }
  if (op.kind == OperationKind::kCollective) {
    fault = collective_fault(context, op, inputs, outputs);
  } else if (op.kind == OperationKind::kSend || op.kind == OperationKind::kRecv) {
    fault = message_fault(op, all);
  } else {
    return fault;
  }
  return fault.empty() ? dtype_fault(context.buffers(class_index), all, op.dtype) : fault;
}

}  // namespace

void check_bounds(const CheckContext& context) {
  for (int section = 0; section < static_cast<int>(context.plan.sections.size()); ++section) {
    for (int index = 0; index < context.plan.class_count(); ++index) {
      const Program& program = context.program(section, index);
      for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
        const std::string fault = fault_of(context, program, program.operations[i], index);
        if (!fault.empty()) {
          context.report(PlanRule::kBounds, section, {index, i}, fault);
        }
      }
    }
  }
}

}  // namespace lockstep
