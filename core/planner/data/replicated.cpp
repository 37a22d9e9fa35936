#include "core/planner/data/replicated.h"

#include <utility>

#include "core/planner/norm_layout.h"

namespace lockstep {

ReplicatedParameters::ReplicatedParameters(const DataParallelInputs& inputs)
    : context_(inputs.context),
      stage_(inputs.stage),
      buffers_(inputs.buffers),
      weight_(inputs.context.graph->parameters.size(), kNoBuffer),
      gradient_(weight_.size(), kNoBuffer),
      states_(weight_.size()),
      layout_(weight_.size(), kNoLayout),
      cast_(weight_.size(), kNoBuffer) {}

void ReplicatedParameters::initialize(ProgramBuilder& b) {
  for_each_parameter(b, [&](std::int32_t parameter) {
    b.at(Phase::kInit);
    weight_[index(parameter)] =
        b.alloc(Category::kParameter,
                context_.parameter_dtype,
                elements(parameter),
                {.lifetime = Lifetime::kPersistent, .parameter = parameter});
    const View all = b.whole(weight_[index(parameter)]);
    b.compute(Work::kInitialize, Shape{{all.elements}}, {}, Views(&all, 1));
  });
}

void ReplicatedParameters::allocate_states(ProgramBuilder& b) {
  for_each_parameter(b, [&](std::int32_t parameter) {
    if (owns(parameter)) {
      allocate_moments(
          b, context_, elements(parameter), {.parameter = parameter}, states_[index(parameter)]);
    }
  });
}

void ReplicatedParameters::create_masters(ProgramBuilder& b) {
  if (!context_.training().has_master_weights()) {
    return;
  }
  for_each_parameter(b, [&](std::int32_t parameter) {
    if (owns(parameter)) {
      allocate_master(b,
                      context_,
                      b.whole(weight_[index(parameter)]),
                      {.parameter = parameter},
                      states_[index(parameter)]);
    }
  });
}

void ReplicatedParameters::begin_step(ProgramBuilder&, int) {}

std::uint16_t ReplicatedParameters::layout_of(ProgramBuilder& b, std::int32_t parameter) {
  std::uint16_t& layout = layout_[index(parameter)];
  if (layout == kNoLayout && !b.counting()) {
    layout = whole_layout(b.tables(), context_, stage_, parameter);
  }
  return layout;
}

View ReplicatedParameters::weight(ProgramBuilder& b, std::int32_t parameter) {
  parameter = stored(parameter);
  const BufferId full = weight_[index(parameter)];
  const bool casts = context_.parameter_dtype != context_.activation_dtype &&
                     !context_.graph->parameter(parameter).vector;
  if (!casts) {
    return b.whole(full);
  }
  BufferId& copy = cast_[index(parameter)];
  if (copy == kNoBuffer) {
    copy = b.alloc(Category::kGatheredParameter,
                   context_.activation_dtype,
                   elements(parameter),
                   {.parameter = parameter});
    b.compute(Work::kCast, Shape{{elements(parameter)}}, {b.whole(full)}, {b.whole(copy)});
  }
  return b.whole(copy);
}

GradientTarget ReplicatedParameters::gradient(ProgramBuilder& b,
                                              std::int32_t parameter,
                                              const Pass&) {
  parameter = stored(parameter);
  BufferId& buffer = gradient_[index(parameter)];
  if (buffer != kNoBuffer) {
    return {b.whole(buffer), true};
  }
  buffer = b.alloc(
      Category::kGradient, context_.gradient_dtype, elements(parameter), {.parameter = parameter});
  return {b.whole(buffer), false};
}

void ReplicatedParameters::gradient_ready(ProgramBuilder&, std::int32_t, const Pass&) {}

void ReplicatedParameters::finish_gradients(ProgramBuilder&) {}

View ReplicatedParameters::final_gradient(ProgramBuilder& b, std::int32_t parameter) {
  return b.whole(gradient_[index(parameter)]);
}

void ReplicatedParameters::for_each_owned(ProgramBuilder& b, const PieceVisitor& visit) {
  for (int chunk = 0; chunk < stage_.chunks(); ++chunk) {
    for_each_position(b, stage_, chunk, false, uniform_blocks(), [&](int position) {
      pieces_.clear();
      for_each_parameter_of(position, [&](std::int32_t parameter) {
        if (!owns(parameter)) {
          return;
        }
        const OptimizerStates& states = states_[index(parameter)];
        OwnedPiece piece;
        piece.elements = elements(parameter);
        piece.gradient = final_gradient(b, parameter);
        piece.states = states.all();
        const View full = b.whole(weight_[index(parameter)]);
        const bool has_master = states.master != kNoBuffer;
        piece.parameter = has_master ? b.whole(states.master) : full;
        piece.compute = has_master ? full : View{};
        piece.layout = layout_of(b, parameter);
        pieces_.push_back(piece);
      });
      visit(pieces_);
    });
  }
}

void ReplicatedParameters::free_casts(ProgramBuilder& b) {
  for_each_parameter(b, [&](std::int32_t parameter) {
    if (cast_[index(parameter)] != kNoBuffer) {
      b.free(std::exchange(cast_[index(parameter)], kNoBuffer));
    }
  });
}

void ReplicatedParameters::finish_step(ProgramBuilder& b) {
  for_each_parameter(b, [&](std::int32_t parameter) {
    if (gradient_[index(parameter)] != kNoBuffer) {
      b.free(std::exchange(gradient_[index(parameter)], kNoBuffer));
    }
  });
  free_casts(b);
}

View ReplicatedParameters::reduced_gradient(ProgramBuilder& b, std::int32_t parameter) {
  return final_gradient(b, stored(parameter));
}

/// All ranks hold the same; who writes which box is the checkpoint's business (layout, coordinate).
void ReplicatedParameters::save(ProgramBuilder& b) {
  for_each_parameter(b, [&](std::int32_t parameter) {
    std::vector<View> parts{b.whole(weight_[index(parameter)])};
    const OptimizerStates& states = states_[index(parameter)];
    if (states.master != kNoBuffer) {
      parts.push_back(b.whole(states.master));
    }
    for (const BufferId state : states.all()) {
      parts.push_back(b.whole(state));
    }
    b.host(Work::kWriteShard,
           Shape{{elements(parameter)}},
           parts,
           {},
           {.layout = layout_of(b, parameter)});
  });
}

View ReplicatedParameters::stored_parameter(ProgramBuilder& b, std::int32_t parameter) {
  return b.whole(weight_[index(stored(parameter))]);
}

}  // namespace lockstep
