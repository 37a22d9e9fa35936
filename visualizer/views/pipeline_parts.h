// PipelineParts: what the files of PipelineView share: the costs that can be set, and what a pass
// is called.
#pragma once

#include <array>
#include <cstdint>

#include "visualizer/views/pipeline_view.h"

namespace lockstep::views {

inline constexpr int kMostCost = 8;

struct CostField {
  ui::S title;
  const char* name;
  std::int32_t UnitCosts::*value;
  int least;
};

inline constexpr std::array<CostField, 4> kCosts{
    {{ui::S::kPipeForwardCost, "tF", &UnitCosts::forward, 1},
     {ui::S::kPipeInputCost, "tB", &UnitCosts::backward_input, 1},
     {ui::S::kPipeWeightCost, "tW", &UnitCosts::backward_weight, 0},
     {ui::S::kPipeMessageCost, "tcomm", &UnitCosts::message, 0}}};

inline ui::S pass_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return ui::S::kForward;
    case ActionKind::kBackwardInput:
      return ui::S::kPipeInput;
    case ActionKind::kBackwardWeight:
      return ui::S::kPipeWeight;
    default:
      return ui::S::kBackward;
  }
}

}  // namespace lockstep::views
