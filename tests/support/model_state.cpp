#include "tests/support/model_state.h"

#include <algorithm>

namespace lockstep::test {
namespace {

std::int64_t padding_of(const Plan& plan, const Buffer& buffer, int rank) {
  if (buffer.layout == kNoLayout || buffer.alias_of != kNoBuffer) {
    return 0;
  }
  const Layout& layout = plan.layouts[buffer.layout];
  const int coordinate = layout.coordinates == plan.mesh.count(kDataAxes)
                             ? plan.mesh.index(kDataAxes, rank)
                             : plan.mesh.coordinate(rank, Axis::kData);
  const std::int64_t padding =
      buffer.elements == layout.elements_per_coordinate
          ? buffer.elements - valid_elements(layout, coordinate % layout.coordinates)
          : layout.padding_elements();
  return padding * size_of(buffer.dtype);
}

}  // namespace

ModelState model_state(const Plan& plan, int rank) {
  const int class_index = plan.class_of_rank(rank);
  const auto c = static_cast<std::size_t>(class_index);
  const std::vector<Buffer>& buffers = plan.buffers[c];
  ModelState state;
  const auto pass = [&](const Operation& op, int sign) {
    const Buffer& buffer = buffers[op.buffer];
    if (buffer.category == Category::kParameter || buffer.category == Category::kGradient ||
        buffer.category == Category::kOptimizer) {
      state.bytes += sign * buffer.bytes();
      state.padding += sign * padding_of(plan, buffer, rank);
    }
  };
  const int steady = static_cast<int>(plan.variant_of_iteration.size());
  for (int iteration = -1; iteration <= steady; ++iteration) {
    const Section& section = iteration < 0 ? *plan.find(SectionKind::kInit) : plan.step(iteration);
    for (const Operation& op : section.programs[c].operations) {
      if (op.kind == OperationKind::kAlloc || op.kind == OperationKind::kFree) {
        pass(op, op.kind == OperationKind::kAlloc ? 1 : -1);
      } else if (iteration == steady && op.phase == Phase::kOptimizer) {
        return state;
      }
    }
  }
  return state;
}

ModelState largest_model_state(const Plan& plan) {
  ModelState largest;
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    const ModelState state = model_state(plan, rank);
    largest.bytes = std::max(largest.bytes, state.bytes);
    largest.padding = std::max(largest.padding, state.padding);
  }
  return largest;
}

std::vector<ProgramSummary> iterations(const Plan& plan, int class_index, int count) {
  const auto c = static_cast<std::size_t>(class_index);
  const Section* init = plan.find(SectionKind::kInit);
  CategoryBytes held = summarize(plan, class_index, init->programs[c], CategoryBytes{}).at_end;
  std::vector<ProgramSummary> summaries;
  for (int iteration = 0; iteration < count; ++iteration) {
    summaries.push_back(summarize(plan, class_index, plan.step(iteration).programs[c], held));
    held = summaries.back().at_end;
  }
  return summaries;
}

int steady_iteration(const Plan& plan) {
  return static_cast<int>(plan.variant_of_iteration.size()) - 1;
}

}  // namespace lockstep::test
