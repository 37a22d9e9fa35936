#include "core/plan_fingerprint.h"

#include <bit>

#include "core/model_graph.h"

namespace lockstep {
namespace {

/// Words in, one word out. Multiplication and rotation as in the finaliser of MurmurHash3 (public
/// domain, A. Appleby): every bit of a word reaches every bit of the state.
class Mixer {
 public:
  void add(std::uint64_t word) {
    word *= 0x87c37b91114253d5U;
    word = std::rotl(word, 31) * 0x4cf5ad432745937fU;
    state_ = std::rotl(state_ ^ word, 27) * 5 + 0x52dce729U;
  }
  template <typename Integer>
  void number(Integer value) {
    add(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  }
  /// A list begins with its length, so that neighbouring lists cannot trade elements.
  template <typename List, typename Each>
  void list(const List& values, Each&& each) {
    number(values.size());
    for (const auto& value : values) {
      each(value);
    }
  }
  std::uint64_t result() const {
    std::uint64_t value = state_;
    value = (value ^ (value >> 33U)) * 0xff51afd7ed558ccdU;
    value = (value ^ (value >> 33U)) * 0xc4ceb9fe1a85ec53U;
    return value ^ (value >> 33U);
  }

 private:
  std::uint64_t state_ = 0x9ae16a3b2f90404fU;
};

/// Small fields side by side, eight bits each.
template <typename... Fields>
std::uint64_t packed(Fields... fields) {
  std::uint64_t word = 0;
  ((word = (word << 8U) | static_cast<std::uint8_t>(fields)), ...);
  return word;
}

std::uint64_t halves(std::uint64_t high, std::uint64_t low) {
  return (high << 32U) | (low & 0xffffffffU);
}

std::uint64_t quarters(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  return halves((a << 16U) | (b & 0xffffU), ((c & 0xffffU) << 16U) | (d & 0xffffU));
}

void add_operation(Mixer& mixer, const Operation& op) {
  mixer.add(packed(op.kind,
                   op.work,
                   op.collective,
                   op.phase,
                   op.stream,
                   op.communicator,
                   op.reduction,
                   op.dtype));
  mixer.add(packed(op.issue, op.inputs, op.outputs));
  mixer.add(quarters(op.flags & 0xffffU,
                     static_cast<std::uint16_t>(op.microbatch),
                     static_cast<std::uint16_t>(op.peer),
                     static_cast<std::uint16_t>(op.root)));
  mixer.add(quarters(0, op.scalar, op.layout, op.dependencies));
  mixer.number(op.elements);
  mixer.add(halves(op.module, op.shape));
  mixer.add(halves(op.tag, op.buffer));
  mixer.add(halves(op.guard, op.first_view));
  mixer.number(op.first_dependency);
}

void add_program(Mixer& mixer, const Program& program) {
  mixer.list(program.operations, [&](const Operation& op) { add_operation(mixer, op); });
  mixer.list(program.views, [&](const View& view) {
    mixer.add(halves(static_cast<std::uint64_t>(view.axis), view.buffer));
    mixer.number(view.offset);
    mixer.number(view.elements);
    mixer.number(view.stride);
  });
  mixer.list(program.dependencies, [&](std::uint32_t on) { mixer.number(on); });
}

void add_buffer(Mixer& mixer, const Buffer& buffer) {
  mixer.add(packed(buffer.category, buffer.dtype, buffer.lifetime, buffer.storage));
  mixer.add(halves(buffer.layout, static_cast<std::uint32_t>(buffer.parameter)));
  mixer.number(buffer.alias_of);
  mixer.number(buffer.alias_offset);
  mixer.number(buffer.elements);
}

void add_layout(Mixer& mixer, const Layout& layout) {
  mixer.number(layout.coordinates);
  mixer.number(layout.elements_per_coordinate);
  mixer.list(layout.entries, [&](const LayoutEntry& entry) {
    mixer.number(entry.parameter);
    mixer.number(entry.dim);
    mixer.number(entry.rows);
    mixer.number(entry.rows_per_coordinate);
    mixer.number(entry.row_elements);
    mixer.number(entry.flat_offset);
    mixer.number(entry.row_shift);
    mixer.number(entry.outer);
    mixer.number(entry.norm_axes);
  });
}

void add_tables(Mixer& mixer, const Plan& plan) {
  mixer.list(plan.communicators, [&](const Communicator& it) {
    mixer.add(packed(it.axes, it.control));
    mixer.add(it.pipeline_coordinates);
  });
  mixer.list(plan.layouts, [&](const Layout& layout) { add_layout(mixer, layout); });
  mixer.list(plan.shapes, [&](const Shape& shape) {
    for (const std::int64_t extent : shape.extent) {
      mixer.number(extent);
    }
  });
  mixer.list(plan.scalars, [&](const Scalar& it) {
    mixer.add(packed(it.source, it.meaning));
    mixer.number(it.numerator);
    mixer.number(it.denominator);
  });
}

}  // namespace

std::uint64_t plan_fingerprint(const Plan& plan) {
  Mixer mixer;
  for (int axis = 0; axis < kAxisCount; ++axis) {
    mixer.number(plan.mesh.size(static_cast<Axis>(axis)));
  }
  mixer.add(packed(plan.class_axes, plan.host_shared, plan.tf32));
  mixer.number(plan.microbatches);
  mixer.number(plan.graph != nullptr ? plan.graph->parameter_count() : 0);
  mixer.list(plan.variant_of_iteration, [&](std::int32_t variant) { mixer.number(variant); });
  mixer.list(plan.sections, [&](const Section& section) {
    mixer.add(packed(section.kind));
    mixer.number(section.variant);
    mixer.list(section.programs, [&](const Program& program) { add_program(mixer, program); });
  });
  mixer.list(plan.buffers, [&](const std::vector<Buffer>& buffers) {
    mixer.list(buffers, [&](const Buffer& buffer) { add_buffer(mixer, buffer); });
  });
  add_tables(mixer, plan);
  return mixer.result();
}

}  // namespace lockstep
