// What a LanesPane paints over its boxes: arrows from cause to effect, the chain of the critical
// path, and who came when to a collective. Everything has a shape of its own, so that no colour is
// needed to tell it.
#include <algorithm>
#include <cmath>

#include "visualizer/ui/plot.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/lanes_pane.h"

namespace lockstep::views {
namespace {

using ui::Rect;
using ui::scaled;

/// A line that stands out from whatever is below it.
void line_with_rim(const ImVec2& a, const ImVec2& b, ImU32 colour, float width) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddLine(a, b, ui::theme().panel, width + scaled(2));
  list.AddLine(a, b, colour, width);
}

/// A triangle whose tip is at `tip`, pointing right.
void head(const ImVec2& tip, float size, ImU32 colour, bool filled) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 above(tip.x - size, tip.y - size * 0.6F);
  const ImVec2 below(tip.x - size, tip.y + size * 0.6F);
  list.AddTriangleFilled(above, tip, below, filled ? colour : ui::theme().panel);
  list.AddTriangle(above, tip, below, filled ? ui::theme().panel : colour, 1);
}

/// Where a rank came; full for the last one.
void flag(const ImVec2& tip, float size, bool full) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 left(tip.x - size, tip.y - 1.5F * size);
  const ImVec2 right(tip.x + size, tip.y - 1.5F * size);
  list.AddTriangleFilled(left, right, tip, full ? ui::theme().text : ui::theme().panel);
  list.AddTriangle(left, right, tip, full ? ui::theme().panel : ui::theme().text, 1);
}

float middle(const Rect& rect) {
  return std::floor((rect.min.y + rect.max.y) / 2);
}

}  // namespace

void LanesPane::paint_arrow(const Layout& at, const LanesArrow& arrow) const {
  const std::size_t rows = group_of_row_.size();
  if (arrow.from_row >= rows || arrow.to_row >= rows) {
    return;
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float size = std::floor(scaled(arrow.strong ? 10 : 7));
  const float width = std::max(1.0F, std::floor(scaled(arrow.strong ? 3 : 1)));
  const ImVec2 to(x_of(at.body, arrow.to), middle(row_rect(at, arrow.to_row)));
  // What ended just then would leave no room to see the arrow.
  const ImVec2 from(std::min(x_of(at.body, arrow.from), to.x - 2 * size),
                    middle(row_rect(at, arrow.from_row)));
  const bool beside = (from.x < at.body.min.x && to.x < at.body.min.x) ||
                      (from.x > at.body.max.x && to.x > at.body.max.x);
  if (beside) {
    return;
  }
  const ImU32 colour = ui::theme().text;
  const ImVec2 end(to.x - size / 2, to.y);
  const bool same_row = arrow.from_row == arrow.to_row;
  const float across = to.x - from.x;
  const float bend = same_row ? across / 4 : std::clamp(across / 2, size, scaled(60));
  const float rise = same_row ? at.row_height * 0.45F : 0;
  const ImVec2 one(from.x + bend, from.y - rise);
  const ImVec2 two(end.x - bend, end.y - rise);
  list.AddBezierCubic(from, one, two, end, ui::theme().panel, width + scaled(2));
  list.AddBezierCubic(from, one, two, end, colour, width);
  list.AddCircleFilled(from, width + scaled(1.5F), colour, 8);
  head(to, size, colour, arrow.strong);
}

/// Only where the path changes its row, and not more often than can be seen.
void LanesPane::paint_chain(const Layout& at, const std::vector<LanesArrow>& chain) const {
  const float least = scaled(5);
  const float width = std::max(1.0F, std::floor(scaled(2)));
  float last = at.body.min.x - 2 * least;
  const auto first = std::partition_point(
      chain.begin(), chain.end(), [&](const LanesArrow& it) { return it.to < window_.from; });
  for (auto it = first; it != chain.end() && it->from <= window_.to; ++it) {
    const float x = x_of(at.body, it->to);
    if (x - last < least || it->from_row >= group_of_row_.size() ||
        it->to_row >= group_of_row_.size()) {
      continue;
    }
    last = x;
    const float from = middle(row_rect(at, it->from_row));
    const float to = middle(row_rect(at, it->to_row));
    line_with_rim(
        ImVec2(x_of(at.body, it->from), from), ImVec2(x, to), ui::theme().critical, width);
    head(ImVec2(x + scaled(2), to), std::floor(scaled(6)), ui::theme().critical, true);
  }
}

/// A flag where each came, a bar while it waited, and a line where the last one let all begin.
void LanesPane::paint_arrivals(const Layout& at, const std::vector<LanesArrival>& arrivals) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float size = std::floor(scaled(7));
  const float width = std::max(1.0F, std::floor(scaled(2)));
  const ImU32 colour = ui::theme().text;
  float top = at.body.max.y;
  float bottom = at.body.min.y;
  float start = at.body.min.x;
  for (const LanesArrival& it : arrivals) {
    if (it.row >= group_of_row_.size()) {
      continue;
    }
    const Rect rect = row_rect(at, it.row);
    start = x_of(at.body, it.started);
    top = std::min(top, rect.min.y);
    bottom = std::max(bottom, rect.max.y);
  }
  if (bottom <= top) {
    return;
  }
  line_with_rim(ImVec2(start, top), ImVec2(start, bottom), colour, width);
  for (const LanesArrival& it : arrivals) {
    if (it.row >= group_of_row_.size()) {
      continue;
    }
    const Rect rect = row_rect(at, it.row);
    const float x = x_of(at.body, it.arrived);
    const float y = rect.max.y - size;
    if (start - x > 1) {
      line_with_rim(ImVec2(x, y), ImVec2(start, y), colour, width);
    }
    const std::string text = it.last ? ui::tr(ui::S::kCauseLast) : it.text;
    const float room = ui::text_width(*ui::state().fonts.small, text) + 2 * size;
    const float left = it.last ? x + size : (x + start - room) / 2;
    const ImVec2 corner(left, y - 2 * size);
    if ((it.last || start - x > room) && at.body.contains(corner)) {
      ui::draw_plate(list, at.body, corner, text);
    }
    flag(ImVec2(x, y + size), size, it.last);
  }
}

}  // namespace lockstep::views
