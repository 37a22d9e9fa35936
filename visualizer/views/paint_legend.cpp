#include "visualizer/views/paint_legend.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "visualizer/ui/draw.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {

using ui::scaled;
using view::LaneBox;

void draw_paint_legend(const view::Lanes& lanes) {
  std::array<bool, view::kPaintCount> used{};
  const Nanoseconds coarse = std::max<Nanoseconds>(1, lanes.whole().length() / 200);
  for (std::size_t row = 0; row < lanes.rows().size(); ++row) {
    for (const LaneBox& box : lanes.boxes(row, lanes.whole(), coarse)) {
      used[static_cast<std::size_t>(box.paint)] = true;
    }
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float end = origin.x + ImGui::GetContentRegionAvail().x;
  const float line = std::floor(ui::state().fonts.small->FontSize * 1.6F);
  ImVec2 at = origin;
  for (int i = 0; i < view::kPaintCount; ++i) {
    if (!used[static_cast<std::size_t>(i)]) {
      continue;
    }
    const auto paint = static_cast<view::Paint>(i);
    const std::string_view name = ui::term(name_of(paint));
    const float width = scaled(30) + ui::text_width(*ui::state().fonts.small, name);
    if (at.x > origin.x && at.x + width > end) {
      at = ImVec2(origin.x, at.y + line);
    }
    const float drawn = ui::legend_entry(list, at, ui::theme().look(paint), letter_of(paint), name);
    at.x += std::floor(drawn + scaled(14));
  }
  ImGui::Dummy(ImVec2(1, at.y - origin.y + line));
}

}  // namespace lockstep::views
