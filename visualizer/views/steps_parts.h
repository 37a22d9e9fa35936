// StepsParts: what the files of StepsView share: what can be asked for, and a line's height.
#pragma once

#include <array>
#include <cstdint>

#include "visualizer/ui/state.h"
#include "visualizer/views/steps_view.h"

namespace lockstep::views {

inline constexpr std::array<const char*, 3> kAlgorithms{"ring", "tree", "direct"};
inline constexpr int kFewestRanks = 2;
inline constexpr int kMostRanks = 8;
inline constexpr std::int64_t kLeastBytes = 64;
inline constexpr std::int64_t kMostBytes = 1 << 20;

inline float line_height() {
  return ui::state().fonts.small->FontSize + 2;
}

}  // namespace lockstep::views
