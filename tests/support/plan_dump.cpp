#include "tests/support/plan_dump.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep::test {
namespace {

void dump(const Buffer& buffer, std::string& text) {
  text += fmt::format("{} {} {} {} {} {} {} {} {}\n",
                      static_cast<int>(buffer.category),
                      static_cast<int>(buffer.dtype),
                      static_cast<int>(buffer.lifetime),
                      static_cast<int>(buffer.storage),
                      buffer.layout,
                      buffer.parameter,
                      buffer.alias_of,
                      buffer.alias_offset,
                      buffer.elements);
}

void dump(const Operation& op, std::string& text) {
  text += fmt::format("{} {} {} {} {} {} {} {} {} ",
                      static_cast<int>(op.kind),
                      static_cast<int>(op.work),
                      static_cast<int>(op.collective),
                      static_cast<int>(op.phase),
                      static_cast<int>(op.stream),
                      op.communicator,
                      static_cast<int>(op.reduction),
                      static_cast<int>(op.dtype),
                      static_cast<int>(op.issue));
  text += fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}\n",
                      op.inputs,
                      op.outputs,
                      op.flags,
                      op.microbatch,
                      op.peer,
                      op.root,
                      op.scalar,
                      op.layout,
                      op.dependencies,
                      op.module,
                      op.elements,
                      op.shape,
                      op.tag,
                      op.buffer,
                      op.guard,
                      op.first_view);
}

void dump(const Program& program, std::string& text) {
  for (const Operation& op : program.operations) {
    dump(op, text);
  }
  for (const View& view : program.views) {
    text += fmt::format("{} {} {} {} {}\n",
                        view.buffer,
                        static_cast<int>(view.axis),
                        view.offset,
                        view.elements,
                        view.stride);
  }
  text += fmt::format("{}\n", fmt::join(program.dependencies, " "));
}

void dump_tables(const Plan& plan, std::string& text) {
  for (const Communicator& each : plan.communicators) {
    text += fmt::format("{} {} {}\n", each.axes, each.pipeline_coordinates, each.control);
  }
  for (const Layout& layout : plan.layouts) {
    text += fmt::format("layout {} {}\n", layout.coordinates, layout.elements_per_coordinate);
    for (const LayoutEntry& entry : layout.entries) {
      text += fmt::format("{} {} {} {} {} {} {} {} {}\n",
                          entry.parameter,
                          entry.dim,
                          entry.rows,
                          entry.rows_per_coordinate,
                          entry.row_elements,
                          entry.flat_offset,
                          entry.row_shift,
                          entry.outer,
                          entry.norm_axes);
    }
  }
  for (const Shape& shape : plan.shapes) {
    text += fmt::format("shape {}\n", fmt::join(shape.extent, " "));
  }
  for (const Scalar& scalar : plan.scalars) {
    text += fmt::format("{} {} {}/{}\n",
                        static_cast<int>(scalar.source),
                        static_cast<int>(scalar.meaning),
                        scalar.numerator,
                        scalar.denominator);
  }
}

}  // namespace

std::string dump(const Plan& plan) {
  std::string text = fmt::format("classes {} {}, {} micro-batches, {}, variants {}\n",
                                 plan.class_axes,
                                 plan.class_count(),
                                 plan.microbatches,
                                 plan.host_shared,
                                 fmt::join(plan.variant_of_iteration, " "));
  for (int axis = 0; axis < kAxisCount; ++axis) {
    text += fmt::format("{} ", plan.mesh.size(static_cast<Axis>(axis)));
  }
  dump_tables(plan, text);
  for (const std::vector<Buffer>& buffers : plan.buffers) {
    for (const Buffer& buffer : buffers) {
      dump(buffer, text);
    }
  }
  for (const Section& section : plan.sections) {
    text += fmt::format("section {} {}\n", static_cast<int>(section.kind), section.variant);
    for (const Program& program : section.programs) {
      dump(program, text);
    }
  }
  return text;
}

}  // namespace lockstep::test
