#include "visualizer/models/gradient_flow.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/model_graph.h"

namespace lockstep::view {
namespace {

bool reduces_over_data(const Plan& plan, const Operation& op) {
  if (op.kind != OperationKind::kCollective || op.has(kControl)) {
    return false;
  }
  const AxisMask axes = plan.communicators[op.communicator].axes;
  const bool data = axes != 0 && (axes & static_cast<AxisMask>(~kDataAxes)) == 0;
  return data &&
         (op.collective == Collective::kAllReduce || op.collective == Collective::kReduceScatter);
}

class Flow {
 public:
  Flow(const Plan& plan, int class_index, const Program& program)
      : plan_(plan),
        buffers_(plan.buffers[static_cast<std::size_t>(class_index)]),
        program_(program),
        written_(plan.graph->parameters.size(), 0),
        scaled_(buffers_.size(), 0),
        pieces_(buffers_.size()) {
    for (std::uint32_t id = 0; id < buffers_.size(); ++id) {
      const Buffer& buffer = buffers_[id];
      if (buffer.alias_of != kNoBuffer && is_gradient(buffer)) {
        lent_[buffer.alias_of].push_back(id);
      }
    }
  }

  std::vector<GradientReduction> run() {
    for (std::uint32_t i = 0; i < program_.operations.size(); ++i) {
      pass(i, program_.operations[i]);
    }
    return std::move(found_);
  }

 private:
  static bool is_gradient(const Buffer& buffer) {
    return buffer.parameter >= 0 && buffer.category == Category::kGradient;
  }

  void pass(std::uint32_t i, const Operation& op) {
    if (op.kind == OperationKind::kAlloc) {
      pieces_[op.buffer].clear();
      scaled_[op.buffer] = 0;
    } else if (reduces_over_data(plan_, op)) {
      add_reduction(i, op);
    } else if (op.work == Work::kPack) {
      fill(i, op);
    } else if (op.work == Work::kScale && op.has(kInPlace)) {
      scale(i, op);
    } else {
      for (const View& view : program_.outputs_of(op)) {
        note_write(i, view);
      }
    }
  }

  /// The gradient that the view is, or null. Whole gradients come to be when they are asked for.
  const ReducedGradient* gradient_at(const View& view) {
    std::vector<ReducedGradient>& pieces = pieces_[view.buffer];
    const Buffer& buffer = buffers_[view.buffer];
    if (pieces.empty() && is_gradient(buffer)) {
      pieces.push_back({buffer.parameter, 0, buffer.elements, 0, 0});
    }
    const auto after = std::upper_bound(
        pieces.begin(), pieces.end(), view.offset, [](auto offset, const ReducedGradient& it) {
          return offset < it.offset;
        });
    if (after == pieces.begin()) {
      return nullptr;
    }
    const ReducedGradient& piece = *(after - 1);
    return view.offset < piece.offset + piece.elements ? &piece : nullptr;
  }

  void note_write(std::uint32_t i, const View& view) {
    const ReducedGradient* gradient = view.elements > 0 ? gradient_at(view) : nullptr;
    if (gradient != nullptr) {
      written_[static_cast<std::size_t>(gradient->parameter)] = i;
    }
  }

  void put(std::uint32_t buffer, ReducedGradient piece) {
    std::vector<ReducedGradient>& pieces = pieces_[buffer];
    const auto at = std::lower_bound(
        pieces.begin(), pieces.end(), piece.offset, [](const ReducedGradient& it, auto offset) {
          return it.offset < offset;
        });
    if (at != pieces.end() && at->offset == piece.offset) {
      *at = piece;
    } else {
      pieces.insert(at, piece);
    }
  }

  /// Gradients side by side, or each where the layout has it.
  void fill(std::uint32_t i, const Operation& op) {
    const View output = program_.outputs_of(op).front();
    std::int64_t offset = output.offset;
    for (const View& input : program_.inputs_of(op)) {
      const ReducedGradient* source = gradient_at(input);
      if (source != nullptr) {
        const std::int32_t parameter = source->parameter;
        const std::int64_t at =
            op.layout == kNoLayout ? offset : offset_of(plan_.layouts[op.layout], parameter);
        put(output.buffer,
            {parameter, at, input.elements, written_[static_cast<std::size_t>(parameter)], i});
      }
      offset += input.elements;
    }
  }

  /// The order of a message that is laid out by coordinates: that of its entries.
  static std::int64_t offset_of(const Layout& layout, std::int32_t parameter) {
    std::int64_t offset = 0;
    for (const LayoutEntry& entry : layout.entries) {
      if (entry.parameter == parameter) {
        return offset;
      }
      offset += entry.elements();
    }
    return offset;
  }

  void scale(std::uint32_t i, const Operation& op) {
    const View output = program_.outputs_of(op).front();
    scaled_[output.buffer] = i;
    const ReducedGradient* found = gradient_at(output);
    if (found != nullptr && found->offset == output.offset) {
      ReducedGradient piece = *found;
      piece.written = written_[static_cast<std::size_t>(piece.parameter)];
      piece.filled = i;
      put(output.buffer, piece);
    }
  }

  void add_reduction(std::uint32_t i, const Operation& op) {
    const View input = program_.inputs_of(op).front();
    GradientReduction reduction{i, {}};
    const auto lent = lent_.find(input.buffer);
    if (lent != lent_.end()) {
      for (const std::uint32_t id : lent->second) {
        const Buffer& buffer = buffers_[id];
        const std::uint32_t written = written_[static_cast<std::size_t>(buffer.parameter)];
        reduction.gradients.push_back({buffer.parameter,
                                       buffer.alias_offset,
                                       buffer.elements,
                                       written,
                                       std::max(written, scaled_[input.buffer])});
      }
    } else {
      for (const ReducedGradient& piece : pieces_[input.buffer]) {
        const std::int64_t end = input.offset + input.elements;
        if (piece.offset >= input.offset && piece.offset < end) {
          reduction.gradients.push_back(piece);
        }
      }
    }
    std::sort(
        reduction.gradients.begin(),
        reduction.gradients.end(),
        [](const ReducedGradient& a, const ReducedGradient& b) { return a.offset < b.offset; });
    if (!reduction.gradients.empty()) {
      found_.push_back(std::move(reduction));
    }
  }

  const Plan& plan_;
  const std::vector<Buffer>& buffers_;
  const Program& program_;
  std::vector<std::uint32_t> written_;  ///< by parameter: the operation that wrote it last
  std::vector<std::uint32_t> scaled_;   ///< by buffer: the operation that scaled all of it
  std::vector<std::vector<ReducedGradient>> pieces_;          ///< by buffer, by offset
  std::map<std::uint32_t, std::vector<std::uint32_t>> lent_;  ///< gradients that are views
  std::vector<GradientReduction> found_;
};

}  // namespace

std::vector<GradientReduction> gradient_reductions(const Plan& plan,
                                                   int class_index,
                                                   const Program& program) {
  return Flow(plan, class_index, program).run();
}

bool gathers_parameters(const Plan& plan, int class_index, const Program& program) {
  const std::vector<Buffer>& buffers = plan.buffers[static_cast<std::size_t>(class_index)];
  return std::any_of(
      program.operations.begin(), program.operations.end(), [&](const Operation& op) {
        return op.work == Work::kUnpack && op.layout != kNoLayout && op.outputs > 0 &&
               buffers[program.outputs_of(op).front().buffer].category ==
                   Category::kGatheredParameter;
      });
}

}  // namespace lockstep::view
