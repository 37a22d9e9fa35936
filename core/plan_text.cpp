#include "core/plan_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/check.h"
#include "core/model_graph.h"

namespace lockstep {
namespace {

std::string stages_text(std::uint64_t stages) {
  std::string text;
  for (unsigned stage = 0; stage < 64; ++stage) {
    if (((stages >> stage) & 1U) != 0) {
      text += fmt::format("{}{}", text.empty() ? "" : ",", stage);
    }
  }
  return text;
}

std::string shape_text(const Plan& plan, const Operation& op) {
  if (op.shape >= plan.shapes.size()) {
    return {};
  }
  std::string text;
  for (const std::int64_t extent : plan.shapes[op.shape].extent) {
    if (extent != 0) {
      text += fmt::format("{}{}", text.empty() ? " " : "x", extent);
    }
  }
  return text;
}

std::string communicator_text(const Plan& plan, const Operation& op) {
  return op.communicator < plan.communicators.size()
             ? group_text(plan.mesh, plan.communicators[op.communicator])
             : std::string("?");
}

std::string collective_text(const Plan& plan, const Operation& op) {
  std::string text = fmt::format("{} {} {} {}",
                                 name_of(op.collective),
                                 communicator_text(plan, op),
                                 op.elements,
                                 name_of(op.dtype));
  if (op.reduction != Reduction::kNone) {
    text += fmt::format(" {}", name_of(op.reduction));
  }
  if (op.root >= 0) {
    text += fmt::format(" root {}", op.root);
  }
  return text;
}

std::string buffer_text(const Plan& plan, int class_index, const Operation& op) {
  const std::vector<Buffer>& buffers = plan.buffers[static_cast<std::size_t>(class_index)];
  if (op.buffer >= buffers.size()) {
    return fmt::format("{} buffer {}", name_of(op.kind), op.buffer);
  }
  const Buffer& buffer = buffers[op.buffer];
  return fmt::format("{} buffer {} ({} {} {})",
                     name_of(op.kind),
                     op.buffer,
                     name_of(buffer.category),
                     buffer.elements,
                     name_of(buffer.dtype));
}

std::string action_text(const Plan& plan, int class_index, const Operation& op) {
  switch (op.kind) {
    case OperationKind::kCollective:
      return collective_text(plan, op);
    case OperationKind::kSend:
    case OperationKind::kRecv:
      return fmt::format("{} stage {} {} {} tag {}",
                         op.kind == OperationKind::kSend ? "send to" : "recv from",
                         op.peer,
                         op.elements,
                         name_of(op.dtype),
                         op.tag);
    case OperationKind::kAlloc:
    case OperationKind::kFree:
      return buffer_text(plan, class_index, op);
    case OperationKind::kCopy:
      return fmt::format("copy {} {}", op.elements, name_of(op.dtype));
    case OperationKind::kCompute:
    case OperationKind::kHost:
      break;
  }
  return std::string(name_of(op.work)) + shape_text(plan, op);
}

}  // namespace

int rank_of_class(const Plan& plan, int class_index) {
  // The class is the mixed-radix number of its coordinates, so its digits are taken from the
  // innermost axis on; axes outside class_axes stay at 0.
  int rank = 0;
  int rest = class_index;
  for (int number = kAxisCount - 1; number >= 0; --number) {
    const Axis axis = static_cast<Axis>(number);
    if ((plan.class_axes & mask_of(axis)) != 0) {
      rank = plan.mesh.with(rank, axis, rest % plan.mesh.size(axis));
      rest /= plan.mesh.size(axis);
    }
  }
  return rank;
}

std::string group_text(const Communicator& communicator) {
  std::string text;
  for (int number = 0; number < kAxisCount; ++number) {
    const Axis axis = static_cast<Axis>(number);
    if ((communicator.axes & mask_of(axis)) != 0) {
      text += (text.empty() ? "" : "+") + std::string(name_of(axis));
      if (axis == Axis::kPipeline && communicator.pipeline_coordinates != 0) {
        text += "{" + stages_text(communicator.pipeline_coordinates) + "}";
      }
    }
  }
  return text.empty() ? "self" : text;
}

std::string group_text(const Mesh& mesh, const Communicator& communicator) {
  Communicator present = communicator;
  present.axes = static_cast<AxisMask>(communicator.axes & present_axes(mesh));
  return group_text(present);
}

std::string section_text(const Plan& plan, int section) {
  const Section& it = plan.sections[static_cast<std::size_t>(section)];
  const auto steps =
      std::count_if(plan.sections.begin(), plan.sections.end(), [](const Section& other) {
        return other.kind == SectionKind::kStep;
      });
  return it.kind == SectionKind::kStep && steps > 1 ? fmt::format("step[{}]", it.variant)
                                                    : std::string(name_of(it.kind));
}

std::string operation_text(const Plan& plan, int class_index, const Operation& op) {
  std::string text = action_text(plan, class_index, op);
  if (op.module != kNoModule) {
    const bool known =
        plan.graph != nullptr && op.module < static_cast<std::uint32_t>(plan.graph->module_count());
    text +=
        ", " + (known ? plan.graph->module_name(op.module) : fmt::format("module {}", op.module));
  }
  if (op.microbatch >= 0) {
    text += fmt::format(", micro-batch {}", op.microbatch);
  }
  text += fmt::format(", {}", name_of(op.phase));
  return op.has(kControl) ? text + ", control" : text;
}

std::string describe(const Plan& plan, int class_index, int section, std::uint32_t index) {
  const Program& program = plan.sections[static_cast<std::size_t>(section)]
                               .programs[static_cast<std::size_t>(class_index)];
  LOCKSTEP_CHECK(index < program.operations.size(), "operation is outside its program");
  return fmt::format("rank class {} {} #{}: {}",
                     class_index,
                     section_text(plan, section),
                     index,
                     operation_text(plan, class_index, program.operations[index]));
}

}  // namespace lockstep
