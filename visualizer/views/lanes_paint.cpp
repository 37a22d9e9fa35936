// How a LanesPane looks, but for what lies over it (lanes_overlay.cpp).
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "visualizer/models/text_parts.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/lanes_pane.h"

namespace lockstep::views {
namespace {

using ui::Rect;
using ui::scaled;
using view::LaneBox;
using view::TimeWindow;

/// Still to be seen, but not to be read.
ui::Look dimmed(const ui::Look& look) {
  constexpr float kPart = 0.72F;
  return {ui::mixed(look.fill, ui::theme().raised, kPart), look.text, ui::Hatch::kNone, false};
}

}  // namespace

void LanesPane::paint_labels(const Layout& at) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImFont* font = ui::state().fonts.small;
  list.PushClipRect(at.labels.min, ImVec2(at.body.max.x, at.body.max.y), true);
  for (std::size_t row = 0; row < lanes_->rows().size(); ++row) {
    const view::LaneRow& it = lanes_->rows()[row];
    const Rect rect = row_rect(at, row);
    if (rect.max.y < at.body.min.y || rect.min.y > at.body.max.y) {
      continue;
    }
    const float y = rect.min.y + (rect.height() - font->FontSize) / 2;
    if (row == 0 || lanes_->rows()[row - 1].group != it.group) {
      ui::text_at(list, font, ImVec2(at.labels.min.x, y), ui::theme().text, it.group);
    }
    const std::string_view name = ui::term(it.name);
    const float width = ui::text_width(*font, name);
    ui::text_at(
        list, font, ImVec2(at.labels.max.x - width - scaled(6), y), ui::theme().muted, name);
  }
  list.PopClipRect();
}

void LanesPane::paint_box(const Layout& at,
                          std::size_t row,
                          const LaneBox& box,
                          Rect place,
                          const Emphasis& emphasis) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Look& full = ui::theme().look(box.paint);
  const ui::Look look = emphasis.dimmed ? dimmed(full) : full;
  const bool folded = box.item == view::kNoItem;
  if (folded) {
    // As high as it is busy, so that gaps are not lost.
    const double busy = static_cast<double>(box.busy) /
                        static_cast<double>(std::max<Nanoseconds>(1, box.end - box.begin));
    place.min.y += std::floor(static_cast<float>((1 - busy) * 0.8) * place.height());
  } else if (place.width() > scaled(4)) {
    place.max.x -= 1;
  }
  ui::box(list, place, look, at.body);
  if (emphasis.dimmed) {
    return;
  }
  paint_emphasis(at, place, emphasis, !folded);
  const Rect seen = ui::intersect(place, at.body);
  const float em = ui::state().fonts.small->FontSize;
  if (seen.width() >= 3 * em) {
    // Many small ones side by side: what they are together.
    ui::label(list,
              seen,
              look,
              folded ? std::string(ui::term(name_of(box.paint))) : lanes_->label(row, box));
  } else if (seen.width() >= em && seen.height() >= em) {
    ui::letter(list, seen, look, letter_of(box.paint));
  }
}

/// Without sides many small ones in a row do not become a fence.
void LanesPane::paint_emphasis(const Layout& at,
                               const Rect& place,
                               const Emphasis& emphasis,
                               bool sides) {
  if (!emphasis.path && !emphasis.found) {
    return;
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImU32 colour = emphasis.found ? ui::theme().accent : ui::theme().critical;
  const float line = std::max(2.0F, std::floor(scaled(emphasis.found ? 3 : 2)));
  const Rect seen = ui::intersect(place, at.body);
  list.AddRectFilled(seen.min, ImVec2(seen.max.x, seen.min.y + line), colour);
  list.AddRectFilled(ImVec2(seen.min.x, seen.max.y - line), seen.max, colour);
  if (sides && seen.width() >= 3 * line) {
    list.AddRectFilled(seen.min, ImVec2(seen.min.x + line, seen.max.y), colour);
    list.AddRectFilled(ImVec2(seen.max.x - line, seen.min.y), seen.max, colour);
  }
}

void LanesPane::paint_row(const Layout& at, std::size_t row, const LanesOverlay& overlay) const {
  const Rect rect = row_rect(at, row);
  const Rect clip = ui::intersect(rect, at.body);
  ImGui::GetWindowDrawList()->AddRectFilled(clip.min, clip.max, ui::theme().raised);
  std::optional<LaneBox> run;  // small neighbours of one paint, drawn as one
  Rect place = rect;
  Emphasis emphasis;
  const bool marked = overlay.path != nullptr || overlay.found != nullptr;
  const Nanoseconds narrow = narrowest(at, marked);
  const float folds =
      static_cast<float>(2 * static_cast<double>(narrow) * static_cast<double>(at.body.width()) /
                         static_cast<double>(window_.length() + 1));
  const float small = std::max(scaled(5), folds);
  const auto emphasis_of = [&](const LaneBox& box) {
    Emphasis it;
    // Waiting is not on the path: what it waited for is.
    it.path = overlay.path != nullptr && box.paint != view::Paint::kWaiting &&
              overlay.path->holds(row, box);
    it.found = overlay.found != nullptr && overlay.found->holds(row, box);
    it.dimmed = overlay.found != nullptr ? !it.found : overlay.path != nullptr && !it.path;
    return it;
  };
  const auto flush = [&] {
    if (run) {
      place.max.x = std::max(place.max.x, place.min.x + 1);
      paint_box(at, row, *run, place, emphasis);
      run.reset();
    }
  };
  for (const LaneBox& box : lanes_->boxes(row, window_, narrow)) {
    const float left = x_of(at.body, box.begin);
    const float right = x_of(at.body, box.end);
    const Emphasis here = emphasis_of(box);
    const bool alike = here.path == emphasis.path && here.found == emphasis.found;
    const bool joins = run && alike && run->paint == box.paint && left <= place.max.x + 1 &&
                       right - left < small && run->item == view::kNoItem;
    if (joins) {
      run->end = box.end;
      run->busy += box.busy;
      run->count += box.count;
      place.max.x = right;
      continue;
    }
    flush();
    run = box;
    emphasis = here;
    run->item = right - left < small ? view::kNoItem : box.item;
    place.min.x = left;
    place.max.x = right;
  }
  flush();
}

void LanesPane::paint_rows(const Layout& at,
                           const LanesChoice& choice,
                           const LanesOverlay& overlay) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const Nanoseconds start = lanes_->whole().from;  // times are those of the step
  ui::draw_time_axis(list, at.head, at.body, {window_.from - start, window_.to - start});
  list.PushClipRect(at.body.min, at.body.max, true);
  for (std::size_t row = 0; row < lanes_->rows().size(); ++row) {
    const Rect rect = row_rect(at, row);
    if (rect.max.y > at.body.min.y && rect.min.y < at.body.max.y) {
      paint_row(at, row, overlay);
    }
  }
  if (overlay.chain != nullptr) {
    paint_chain(at, *overlay.chain);
  }
  paint_arrivals(at, overlay.arrivals);
  for (const bool strong : {false, true}) {
    for (const LanesArrow& arrow : overlay.arrows) {
      if (arrow.strong == strong) {
        paint_arrow(at, arrow);
      }
    }
  }
  paint_choice(at, choice);
  list.PopClipRect();
}

void LanesPane::paint_choice(const Layout& at, const LanesChoice& choice) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Theme& theme = ui::theme();
  if (choice.area) {
    const float left = x_of(at.body, choice.area->from);
    const float right = std::max(left + 1, x_of(at.body, choice.area->to));
    list.AddRectFilled(ImVec2(left, at.body.min.y), ImVec2(right, at.body.max.y), theme.selection);
    list.AddRectFilled(ImVec2(left, at.body.min.y), ImVec2(left + 1, at.body.max.y), theme.accent);
    list.AddRectFilled(
        ImVec2(right - 1, at.body.min.y), ImVec2(right, at.body.max.y), theme.accent);
  }
  if (choice.selected && choice.selected->row < lanes_->rows().size()) {
    const Rect rect = row_rect(at, choice.selected->row);
    const float left = x_of(at.body, choice.selected->box.begin);
    const float right = std::max(left + 2, x_of(at.body, choice.selected->box.end));
    const float line = std::max(2.0F, std::floor(scaled(2)));
    list.AddRect(ImVec2(left - line / 2, rect.min.y),
                 ImVec2(right + line / 2, rect.max.y),
                 theme.cursor,
                 0,
                 0,
                 line);
  }
  if (choice.cursor && *choice.cursor >= window_.from && *choice.cursor <= window_.to) {
    const float x = x_of(at.body, *choice.cursor);
    list.AddRectFilled(ImVec2(x, at.body.min.y), ImVec2(x + 1, at.body.max.y), theme.cursor);
  }
}

void LanesPane::paint_map(const Layout& at) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled(at.map.min, at.map.max, ui::theme().raised);
  constexpr std::size_t kMostRows = 8;
  const std::size_t rows = lanes_->rows().size();
  const std::size_t strips = std::min(rows, kMostRows);
  const TimeWindow whole = limits();
  const double scale = static_cast<double>(at.map.width()) /
                       static_cast<double>(std::max<Nanoseconds>(1, whole.length()));
  const float height = at.map.height() / static_cast<float>(std::max<std::size_t>(1, strips));
  const auto narrow = static_cast<Nanoseconds>(4 / std::max(scale, 1e-12));
  for (std::size_t strip = 0; strip < strips; ++strip) {
    const std::size_t row = strip * rows / strips;
    const float top = std::floor(at.map.min.y + static_cast<float>(strip) * height);
    for (const LaneBox& box : lanes_->boxes(row, whole, narrow)) {
      const auto x = [&](Nanoseconds time) {
        return std::floor(at.map.min.x +
                          static_cast<float>(static_cast<double>(time - whole.from) * scale));
      };
      list.AddRectFilled(ImVec2(x(box.begin), top),
                         ImVec2(std::max(x(box.begin) + 1, x(box.end)),
                                top + std::max(1.0F, std::floor(height) - 1)),
                         ui::theme().look(box.paint).fill);
    }
  }
  const double from = static_cast<double>(window_.from - whole.from) * scale;
  const double to = static_cast<double>(window_.to - whole.from) * scale;
  const float left = at.map.min.x + static_cast<float>(from);
  const float right = std::max(left + 3, at.map.min.x + static_cast<float>(to));
  const ImU32 shade = (ui::theme().panel & 0x00ffffffU) | 0xb0000000U;
  list.AddRectFilled(at.map.min, ImVec2(left, at.map.max.y), shade);
  list.AddRectFilled(ImVec2(right, at.map.min.y), at.map.max, shade);
  list.AddRect(
      ImVec2(left, at.map.min.y), ImVec2(right, at.map.max.y), ui::theme().accent, 0, 0, 2);
}

void LanesPane::paint_tooltip(const Layout& at) const {
  if (drag_from_ && ImGui::IsMouseDragging(ImGuiMouseButton_Left, kDragPixels)) {
    return;
  }
  const std::optional<LanesBoxRef> under = box_under(at, ImGui::GetIO().MousePos);
  if (!under) {
    return;
  }
  const LaneBox& box = under->box;
  const std::string_view paint = ui::term(name_of(box.paint));
  const std::string length = view::time_text(box.end - box.begin, true);
  ImGui::BeginTooltip();
  if (box.item == view::kNoItem) {
    ImGui::TextUnformatted(ui::trf(ui::S::kFolded, box.count, paint).c_str());
    ImGui::TextUnformatted(length.c_str());
  } else {
    ImGui::TextUnformatted(lanes_->label(under->row, box).c_str());
    ImGui::TextUnformatted(fmt::format("{}, {}", paint, length).c_str());
  }
  ImGui::EndTooltip();
}

}  // namespace lockstep::views
