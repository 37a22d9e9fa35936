// Data movement of the value machine: add, scale, pack, unpack and first values of parameters.
#include <algorithm>

#include <fmt/format.h>

#include "core/check/value_exchange.h"
#include "core/check/value_machine.h"

namespace lockstep {
namespace {

using field::Number;

/// How a parameter's operand relates to a layout's flat buffer.
struct PackSide {
  bool flat_whole = false;  ///< the flat buffer holds all coordinates, else one
  bool part_whole = false;  ///< the operand is the whole parameter, else the coordinate's shard
};

/// Calls visit(in the operand, in the flat buffer, elements) for what an entry has in both.
template <typename Visit>
void for_each_common(const Layout& layout,
                     const LayoutEntry& entry,
                     const PackSide& side,
                     std::int32_t coordinate,
                     Visit&& visit) {
  const std::int32_t first = side.flat_whole ? 0 : coordinate;
  const std::int32_t last = side.flat_whole ? layout.coordinates : coordinate + 1;
  for (std::int32_t c = first; c < last; ++c) {
    const std::int64_t base = side.flat_whole ? c * layout.elements_per_coordinate : 0;
    for_each_piece(entry, c, [&](const LayoutPiece& piece) {
      if (side.part_whole) {
        visit(piece.first, base + piece.offset, piece.elements);
      } else if (c == coordinate) {
        visit(piece.offset - entry.flat_offset, base + piece.offset, piece.elements);
      }
    });
  }
}

/// Zeros wherever a slab has nothing.
void fill_with_zeros(ValueSlab& slab, std::int64_t elements) {
  ValueSlab filled;
  std::int64_t end = 0;
  for (const ValuePiece& piece : slab) {
    if (piece.offset > end) {
      append(filled, {end, piece.offset - end, {}});
    }
    append(filled, piece);
    end = piece.offset + piece.elements;
  }
  if (end < elements) {
    append(filled, {end, elements - end, {}});
  }
  slab.swap(filled);
}

/// `slab` where it has something, else `below`.
void overlay(const ValueSlab& below, ValueSlab& slab) {
  const ValueSlab* both[] = {&below, &slab};
  ValueSlab result;
  zip(std::span<const ValueSlab* const>(both), [&](auto offset, auto elements, auto symbols) {
    append(result, {offset, elements, symbols[1] != nullptr ? *symbols[1] : *symbols[0]});
  });
  slab.swap(result);
}

}  // namespace

/// Which coordinate of a layout this rank is: along the view's axis, else along the axis whose size
/// is the layout's: the data axes, one or both, before others of the same size.
std::int32_t ValueMachine::layout_coordinate(const ValueSite& at,
                                             const View& view,
                                             const Layout& layout) {
  const ValueMemory& memory = rank_of(at).memory;
  if (layout.coordinates == 1) {
    return 0;
  }
  if (view.axis != Axis::kNone && plan_.mesh.size(view.axis) == layout.coordinates) {
    return memory.coordinate(view.axis);
  }
  if (plan_.mesh.size(Axis::kData) == layout.coordinates) {
    return memory.coordinate(Axis::kData);
  }
  if (plan_.mesh.count(kDataAxes) == layout.coordinates) {
    return rank_of(at).data;
  }
  for (const Axis axis : {Axis::kDataReplica, Axis::kTensor, Axis::kPipeline}) {
    if (plan_.mesh.size(axis) == layout.coordinates) {
      return memory.coordinate(axis);
    }
  }
  hooks_.problem(at,
                 fmt::format("no axis has the {} coordinates of the layout", layout.coordinates));
  return 0;
}

void ValueMachine::add(const ValueSite& at) {
  const std::span<const View> from = inputs(at);
  slabs_.resize(std::max<std::size_t>(slabs_.size(), 2));
  rank_of(at).memory.read(from[0], slabs_[0]);
  rank_of(at).memory.read(from[1], slabs_[1]);
  const ValueSlab* both[] = {&slabs_[0], &slabs_[1]};
  sum_slabs(both, part_);
  compare_with_forward(at, 0, digest(part_));
  write(at, outputs(at).front(), part_);
}

/// (x, coefficient?) -> x times the scalar and the coefficient.
void ValueMachine::scale(const ValueSite& at) {
  const std::span<const View> from = inputs(at);
  Number factor = constant_factor(*at.op);
  if (from.size() > outputs(at).size()) {
    factor = field::multiply(factor, number(at, from.back()));
  }
  for (std::size_t i = 0; i < outputs(at).size(); ++i) {
    rank_of(at).memory.read(from[i], part_);
    scale_slab(part_, factor);
    write(at, outputs(at)[i], part_);
  }
}

// ---- pack and unpack ---------------------------------------------------------------------------

namespace {

/// The entry that operand `i` of a pack belongs to; null when the operands do not tell.
const LayoutEntry* entry_of(const Layout& layout,
                            std::size_t i,
                            std::size_t operands,
                            std::int32_t parameter) {
  if (operands == layout.entries.size()) {
    return &layout.entries[i];
  }
  for (const LayoutEntry& entry : layout.entries) {
    if (parameter >= 0 && entry.parameter == parameter) {
      return &entry;
    }
  }
  return nullptr;
}

}  // namespace

void ValueMachine::pack(const ValueSite& at) {
  const std::span<const View> from = inputs(at);
  const View& to = outputs(at).front();
  slab_.clear();
  std::int64_t end = 0;
  if (at.op->layout == kNoLayout) {
    for (const View& view : from) {
      rank_of(at).memory.read(view, part_);
      append_at(slab_, part_, end);
      end += view.elements;
    }
    scale_slab(slab_, constant_factor(*at.op));
  } else {
    const Layout& layout = plan_.layouts[at.op->layout];
    const std::vector<Buffer>& buffers =
        plan_.buffers[static_cast<std::size_t>(rank_of(at).class_index)];
    const std::int32_t coordinate = layout_coordinate(at, to, layout);
    PackSide side;
    side.flat_whole = to.elements == layout.padded_elements();
    std::vector<ValuePiece> pieces;
    ValueSlab operand;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const LayoutEntry* entry =
          entry_of(layout, i, from.size(), buffers[from[i].buffer].parameter);
      if (entry == nullptr) {
        hooks_.problem(at, fmt::format("operand {} is no entry of the layout", i));
        return;
      }
      side.part_whole = from[i].elements == entry->elements();
      rank_of(at).memory.read(from[i], operand);
      for_each_common(layout, *entry, side, coordinate, [&](auto part, auto flat, auto elements) {
        cut(operand, part, elements, part_);
        for (ValuePiece piece : part_) {
          piece.offset += flat;
          pieces.push_back(piece);
        }
      });
    }
    std::sort(pieces.begin(), pieces.end(), [](const ValuePiece& a, const ValuePiece& b) {
      return a.offset < b.offset;
    });
    for (const ValuePiece& piece : pieces) {
      append(slab_, piece);
    }
    scale_slab(slab_, constant_factor(*at.op));
    if (from.size() < layout.entries.size()) {
      // Some of the entries: the others keep what they have.
      rank_of(at).memory.read(to, operand);
      overlay(operand, slab_);
    }
    fill_with_zeros(slab_, to.elements);
  }
  write(at, to, slab_);
  // Where synchronised batch norm keeps its own gradient sums apart from those of all ranks.
  const bool sums_of_all = options_.copies > 1 && at.op->module != kNoModule &&
                           at.op->phase == Phase::kBackward &&
                           plan_.graph->module(at.op->module).kind == ModuleKind::kBatchNorm;
  if (sums_of_all && plan_.graph->model.mlp_norm == MlpNormKind::kSyncBatchNorm) {
    join(plan_.communicators.size(), at, to);
  }
}

void ValueMachine::unpack(const ValueSite& at) {
  const View& from = inputs(at).front();
  const std::span<const View> to = outputs(at);
  ValueSlab flat;
  rank_of(at).memory.read(from, flat);
  scale_slab(flat, constant_factor(*at.op));
  if (at.op->layout == kNoLayout) {
    std::int64_t begin = 0;
    for (const View& view : to) {
      cut(flat, begin, view.elements, part_);
      write(at, view, part_);
      begin += view.elements;
    }
    return;
  }
  const Layout& layout = plan_.layouts[at.op->layout];
  const std::vector<Buffer>& buffers =
      plan_.buffers[static_cast<std::size_t>(rank_of(at).class_index)];
  const std::int32_t coordinate = layout_coordinate(at, from, layout);
  PackSide side;
  side.flat_whole = from.elements == layout.padded_elements();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const LayoutEntry* entry = entry_of(layout, i, to.size(), buffers[to[i].buffer].parameter);
    if (entry == nullptr) {
      hooks_.problem(at, fmt::format("result {} is no entry of the layout", i));
      return;
    }
    side.part_whole = to[i].elements == entry->elements();
    std::vector<ValuePiece> pieces;
    for_each_common(layout, *entry, side, coordinate, [&](auto part, auto place, auto elements) {
      cut(flat, place, elements, part_);
      for (ValuePiece piece : part_) {
        piece.offset += part;
        pieces.push_back(piece);
      }
    });
    std::sort(pieces.begin(), pieces.end(), [](const ValuePiece& a, const ValuePiece& b) {
      return a.offset < b.offset;
    });
    slab_.clear();
    for (const ValuePiece& piece : pieces) {
      append(slab_, piece);
    }
    write(at, to[i], slab_);
  }
}

// ---- first values ------------------------------------------------------------------------------

ValueSymbol ValueMachine::first_symbol(const ValueSite& at,
                                       std::int32_t parameter,
                                       std::int64_t elements) {
  const int t = plan_.mesh.size(Axis::kTensor);
  const ParameterDef& definition = plan_.graph->parameter(parameter);
  const bool sliced = t > 1 && definition.cut != ParameterCut::kNone &&
                      elements == local_rows(definition, t) * local_columns(definition, t);
  return {hooks_.initial(at, parameter), 0, sliced ? rank_of(at).tensor_index : 0, sliced ? t : 1};
}

void ValueMachine::first_values_by_layout(const ValueSite& at,
                                          const View& view,
                                          const Layout& layout) {
  const bool whole = view.elements == layout.padded_elements();
  const std::int32_t first = whole ? 0 : layout_coordinate(at, view, layout);
  const std::int32_t last = whole ? layout.coordinates : first + 1;
  for (std::int32_t c = first; c < last; ++c) {
    const std::int64_t base = (c - first) * layout.elements_per_coordinate;
    for (const LayoutEntry& entry : layout.entries) {
      const ValueSymbol symbol = first_symbol(at, entry.parameter, entry.elements());
      for_each_piece(entry, c, [&](const LayoutPiece& piece) {
        append(slab_, {base + piece.offset, piece.elements, symbol.after(piece.first)});
      });
    }
  }
}

/// A buffer with a layout gets its coordinate's pieces, one with a parameter that parameter (its
/// tensor-parallel slice), any other one a number of its own, the same on all ranks.
void ValueMachine::initialize(const ValueSite& at) {
  for (const View& view : outputs(at)) {
    const Buffer& buffer =
        plan_.buffers[static_cast<std::size_t>(rank_of(at).class_index)][view.buffer];
    const std::uint16_t id = at.op->layout != kNoLayout ? at.op->layout : buffer.layout;
    slab_.clear();
    if (id != kNoLayout) {
      first_values_by_layout(at, view, plan_.layouts[id]);
    } else if (buffer.parameter >= 0) {
      slab_.push_back({0, view.elements, first_symbol(at, buffer.parameter, view.elements)});
    } else {
      const bool statistics = buffer.category == Category::kParameter;
      const Number first = statistics ? hooks_.initial_statistics(at, view.buffer)
                                      : first_statistics_number(kNoBuffer);
      slab_.push_back({0, view.elements, {first, 0, 0, 1}});
    }
    write(at, view, slab_);
  }
}

}  // namespace lockstep
