// The end of a step on the value machine: unscale and check, norm, clip, optimizer.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/check/value_exchange.h"
#include "core/check/value_machine.h"

namespace lockstep {

using field::Number;

/// (gradients..., scaler) -> flag, gradients.
void ValueMachine::unscale_and_check(const ValueSite& at) {
  const std::span<const View> from = inputs(at);
  const std::span<const View> to = outputs(at);
  const Number unscale = field::inverse(loss_scale_number(number(at, from.back())));
  Number flag = number(at, to.front());
  for (std::size_t i = 0; i + 1 < from.size(); ++i) {
    ValueSlab gradient;
    rank_of(at).memory.read(from[i], gradient);
    scale_slab(gradient, unscale);
    flag = hooks_.look(at, gradient, flag);
    if (i + 1 < to.size()) {
      write(at, to[i + 1], gradient);
    }
  }
  write(at, to.front(), {flag, 0, 0, 1});
}

/// (gradients...) -> sum. The gradients one after the other are this coordinate's buffer of the
/// layout, whose entries say on which ranks they count.
void ValueMachine::sum_squares(const ValueSite& at) {
  const std::span<const View> from = inputs(at);
  slab_.clear();
  std::int64_t end = 0;
  for (const View& view : from) {
    rank_of(at).memory.read(view, part_);
    append_at(slab_, part_, end);
    end += view.elements;
  }
  Number sum = 0;
  const auto count = [&](std::int64_t offset, std::int64_t elements) {
    cut(slab_, offset, elements, part_);
    std::int64_t covered = 0;
    for (const ValuePiece& piece : part_) {
      covered += piece.elements;
      sum = field::add(sum, piece.symbol.number == 0 ? 0 : hooks_.square(at, piece));
    }
    if (covered < elements) {
      hooks_.problem(at, fmt::format("{} elements are uninitialised", elements - covered));
    }
  };
  if (at.op->layout == kNoLayout) {
    count(0, end);
  } else {
    const Layout& layout = plan_.layouts[at.op->layout];
    const std::int32_t coordinate = layout_coordinate(at, from.front(), layout);
    for (const LayoutEntry& entry : layout.entries) {
      bool counts = entry.norm_axes != kNotInNorm;
      for (int axis = 0; axis < kAxisCount && counts; ++axis) {
        const auto which = static_cast<Axis>(axis);
        counts =
            (entry.norm_axes & mask_of(which)) == 0 || rank_of(at).memory.coordinate(which) == 0;
      }
      if (counts) {
        for_each_piece(entry, coordinate, [&](const LayoutPiece& piece) {
          count(piece.offset, piece.elements);
        });
      }
    }
  }
  accumulate(at, outputs(at).front(), {sum, 0, 0, 1});
}

void ValueMachine::clip_coefficient(const ValueSite& at) {
  const Number sum = number(at, inputs(at).front());
  write(at, outputs(at).front(), {hooks_.clip(at, sum), 0, 0, 1});
}

namespace {

/// Whether an optimizer state can be that of the parameter: zeros, or of the same elements.
bool fits(const ValueSymbol& state, const ValueSymbol& parameter) {
  return state.number == 0 || (state.begin == parameter.begin && state.same_slice(parameter));
}

}  // namespace

void ValueMachine::step_stretch(const ValueSite& at,
                                std::int64_t offset,
                                std::int64_t elements,
                                std::span<const ValueSymbol* const> symbols,
                                std::span<ValueSlab> after) {
  if (symbols[0] == nullptr) {
    return;  // padding
  }
  if (symbols[0]->number == 0) {
    append(after[0], {offset, elements, {}});  // padding with zeros
    return;
  }
  if (symbols[1] == nullptr) {
    hooks_.problem(at, fmt::format("{} elements of the gradient are uninitialised", elements));
    return;
  }
  const std::size_t states = symbols.size() - 2;
  ValueStep step{elements, *symbols[0], *symbols[1], static_cast<int>(states), {}};
  for (std::size_t s = 0; s < states; ++s) {
    const ValueSymbol* state = symbols[2 + s];
    if (state == nullptr || !fits(*state, step.parameter)) {
      hooks_.problem(at,
                     state == nullptr ? "optimizer state is uninitialised"
                                      : "optimizer state belongs to other elements");
      return;
    }
    step.state[s] = state->number;
  }
  const ValueSymbol like = step.parameter;
  hooks_.step(at, step);
  append(after[0], {offset, elements, step.parameter});
  for (std::size_t s = 0; s < states; ++s) {
    append(after[1 + s], {offset, elements, {step.state[s], like.begin, like.index, like.of}});
  }
}

/// (parameter, gradient, states...) -> parameter, states..., compute copy of the parameter?
void ValueMachine::optimizer(const ValueSite& at) {
  const std::span<const View> from = inputs(at);
  const std::span<const View> to = outputs(at);
  // Scales of 8-bit states have fewer elements than the parameter; they say nothing of their own.
  std::size_t states = 0;
  while (states < 2 && 2 + states < from.size() && from[2 + states].elements == from[0].elements) {
    ++states;
  }
  slabs_.resize(std::max<std::size_t>(slabs_.size(), 8));
  std::array<const ValueSlab*, 4> pointers{};
  for (std::size_t i = 0; i < 2 + states; ++i) {
    rank_of(at).memory.read(from[i], slabs_[i]);
    pointers[i] = &slabs_[i];
  }
  std::array<ValueSlab, 3> after;  // parameter, states
  zip(std::span<const ValueSlab* const>(pointers.data(), 2 + states),
      [&](std::int64_t offset, std::int64_t elements, auto symbols) {
        step_stretch(at, offset, elements, symbols, after);
      });
  write(at, to[0], after[0]);
  for (std::size_t s = 0; s < states && 1 + s < to.size(); ++s) {
    write(at, to[1 + s], after[1 + s]);
  }
  if (to.size() >= from.size()) {
    write(at, to.back(), after[0]);  // parameter and states are in place, so one more is the copy
  }
}

}  // namespace lockstep
