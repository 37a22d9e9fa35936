// CompareParts: what the files of CompareView share: differences in words and colours.
#pragma once

#include <cmath>
#include <string>

#include <imgui.h>

#include "visualizer/models/timeline_text.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/compare_view.h"

namespace lockstep::views {

inline std::string signed_time(Nanoseconds time) {
  return (time > 0 ? "+" : time < 0 ? "-" : "") + view::time_text(std::abs(time), true);
}

inline void difference_text(Nanoseconds difference) {
  const ui::Theme& theme = ui::theme();
  ImGui::PushStyleColor(ImGuiCol_Text,
                        difference > 0   ? theme.bad
                        : difference < 0 ? theme.good
                                         : theme.muted);
  ImGui::TextUnformatted(signed_time(difference).c_str());
  ImGui::PopStyleColor();
}

}  // namespace lockstep::views
