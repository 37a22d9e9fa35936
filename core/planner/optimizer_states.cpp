#include "core/planner/optimizer_states.h"

#include "core/layout.h"

namespace lockstep {
namespace {

void add_state(ProgramBuilder& b,
               DType dtype,
               std::int64_t elements,
               const AllocOptions& options,
               OptimizerStates& states) {
  AllocOptions persistent = options;
  persistent.lifetime = Lifetime::kPersistent;
  const BufferId id = b.alloc(Category::kOptimizer, dtype, elements, persistent);
  const View all = b.whole(id);
  b.compute(Work::kZero, Shape{{elements}}, {}, Views(&all, 1));
  states.states[static_cast<std::size_t>(states.count++)] = id;
}

}  // namespace

void allocate_master(ProgramBuilder& b,
                     const PlannerContext& context,
                     const View& source,
                     const AllocOptions& options,
                     OptimizerStates& states) {
  AllocOptions persistent = options;
  persistent.lifetime = Lifetime::kPersistent;
  states.master = b.alloc(Category::kOptimizer, context.wide_dtype, source.elements, persistent);
  b.compute(Work::kCast, Shape{{source.elements}}, {source}, {b.whole(states.master)});
}

void allocate_moments(ProgramBuilder& b,
                      const PlannerContext& context,
                      std::int64_t elements,
                      const AllocOptions& options,
                      OptimizerStates& states) {
  switch (context.training().optimizer) {
    case OptimizerKind::kSgd:
      return;
    case OptimizerKind::kMomentum:
      return add_state(b, context.wide_dtype, elements, options, states);
    case OptimizerKind::kAdamW:
      add_state(b, context.wide_dtype, elements, options, states);
      return add_state(b, context.wide_dtype, elements, options, states);
    case OptimizerKind::kAdamW8bit:
      add_state(b, DType::kUint8, elements, options, states);
      add_state(b, DType::kUint8, elements, options, states);
      return add_state(
          b, context.wide_dtype, 2 * ceil_divide(elements, kQuantizationBlock), options, states);
  }
}

}  // namespace lockstep
