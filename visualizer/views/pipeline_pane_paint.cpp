// PipelinePane: how cells, labels and curves are painted.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "core/report_text.h"
#include "visualizer/models/timeline_text.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/pipeline_pane.h"
#include "visualizer/views/pipeline_pane_parts.h"

namespace lockstep::views {
namespace {

using ui::Rect;
using ui::S;
using ui::scaled;
using view::PipelineCell;
using view::PipelineGrid;
using view::PipelineRow;

view::Paint paint_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return view::Paint::kForward;
    case ActionKind::kBackwardWeight:
      return view::Paint::kBackwardWeight;
    default:
      return view::Paint::kBackward;
  }
}

}  // namespace

ui::Look cell_look(const PipelineGrid& grid, const PipelineCell& cell) {
  const ui::Theme& theme = ui::theme();
  ui::Look look = theme.look(paint_of(cell.kind));
  if (grid.chunks > 1 && cell.chunk > 0) {
    const float part =
        0.45F * static_cast<float>(cell.chunk) / static_cast<float>(std::max(1, grid.chunks - 1));
    look.fill = ui::mixed(look.fill, theme.background, part);
    for (const ImU32 text : {theme.text, theme.background}) {
      if (ui::contrast(text, look.fill) > ui::contrast(look.text, look.fill)) {
        look.text = text;
      }
    }
  }
  return look;
}

void PipelinePane::paint_axis(std::int64_t origin) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  if (grid_->ticks_per_unit == 0) {
    ui::draw_time_axis(list, at_.head, at_.body, {from_ - origin, from_ - origin + length_});
    return;
  }
  const ImFont* font = ui::state().fonts.small;
  const auto units = static_cast<double>(length_) / static_cast<double>(grid_->ticks_per_unit);
  const int most = std::max(1, static_cast<int>(at_.head.width() / scaled(40)));
  const std::int64_t step =
      view::round_step(std::max<std::int64_t>(1, static_cast<std::int64_t>(units) / most + 1)) *
      grid_->ticks_per_unit;
  for (std::int64_t time = (from_ + step - 1) / step * step; time <= from_ + length_;
       time += step) {
    const float x = x_of(time);
    list.AddRectFilled(
        ImVec2(x, at_.head.max.y - scaled(4)), ImVec2(x + 1, at_.body.max.y), ui::theme().grid);
    const std::string text = grid_time_text(*grid_, time);
    if (x + scaled(3) + ui::text_width(*font, text) <= at_.head.max.x) {
      ui::text_at(list, font, ImVec2(x + scaled(3), at_.head.min.y), ui::theme().muted, text);
    }
  }
}

void PipelinePane::paint_row(std::size_t row, const PipelineChoice& choice) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const Rect rect = cells_rect(row);
  list.AddRectFilled(rect.min, rect.max, ui::theme().background);
  float painted = rect.min.x;  // narrower cells than a pixel are skipped behind it
  const std::vector<PipelineCell>& cells = grid_->rows[row].cells;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const PipelineCell& cell = cells[i];
    Rect place{ImVec2(x_of(cell.begin), rect.min.y), ImVec2(x_of(cell.end), rect.max.y)};
    if (place.max.x <= painted || place.min.x > rect.max.x) {
      continue;
    }
    place.max.x = std::max(place.max.x - (place.width() > 4 ? 1.0F : 0.0F), place.min.x + 1);
    painted = std::max(painted, place.max.x);
    const ui::Look look = cell_look(*grid_, cell);
    ui::box(list, place, look, rect);
    const Rect shown = ui::intersect(place, rect);
    const std::string text = cell_text(*grid_, cell);
    const ImFont& font = *ui::state().fonts.small;
    if (ui::text_width(font, text) + scaled(4) <= shown.width()) {
      ui::centred(list, shown, look, text);
    } else if (ui::text_width(font, text.substr(1)) + 1 <= shown.width() &&
               2 * font.FontSize <= shown.height()) {
      const float middle = std::floor((shown.min.y + shown.max.y) / 2);
      const float line = font.FontSize + 1;
      ui::centred(list,
                  {ImVec2(shown.min.x, middle - line), ImVec2(shown.max.x, middle)},
                  look,
                  text.substr(0, 1));
      ui::centred(list,
                  {ImVec2(shown.min.x, middle), ImVec2(shown.max.x, middle + line)},
                  look,
                  text.substr(1));
    } else if (0.6F * font.FontSize <= shown.width()) {
      ui::centred(list, shown, look, text.substr(0, 1));
    }
    const ActionPlace here{static_cast<std::int32_t>(row), static_cast<std::int32_t>(i)};
    if (choice.selected && *choice.selected == here) {
      const float line = std::max(2.0F, scaled(2));
      list.AddRect(shown.min, shown.max, ui::theme().cursor, 0, 0, line);
      ui::tag_rect("pipeline.selected", shown.min, shown.max, text);
    }
  }
}

/// Steps as high as the count, the most of all rows being the whole height.
void PipelinePane::paint_live(std::size_t row) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Theme& theme = ui::theme();
  const ImFont* font = ui::state().fonts.small;
  const Rect rect = live_rect(row);
  std::int64_t most = 1;
  for (const PipelineRow& it : grid_->rows) {
    most = std::max(most, it.peak_live);
  }
  list.AddRectFilled(ImVec2(rect.min.x, rect.max.y - 1), rect.max, theme.border);
  std::vector<view::LiveChange> live;
  for (const view::LiveChange& it : grid_->rows[row].live) {
    if (!live.empty() && live.back().time == it.time) {
      live.pop_back();
    }
    if (live.empty() || live.back().count != it.count) {
      live.push_back(it);
    }
  }
  float painted = rect.min.x;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const float left = std::max(x_of(live[i].time), painted);
    const float right =
        std::min(i + 1 < live.size() ? x_of(live[i + 1].time) : x_of(grid_->end), rect.max.x);
    if (live[i].count == 0 || right <= left) {
      continue;
    }
    painted = right;
    const float height = std::max(
        1.0F,
        std::floor(rect.height() * static_cast<float>(live[i].count) / static_cast<float>(most)));
    const float top = rect.max.y - height;
    list.AddRectFilled(ImVec2(left, top), ImVec2(right, rect.max.y), theme.raised);
    list.AddRectFilled(ImVec2(left, top), ImVec2(right, top + 1), theme.muted);
    const std::string text = std::to_string(live[i].count);
    const float width = ui::text_width(*font, text);
    // Inside the bar, or above one that is too low for it.
    const float line = height > font->FontSize ? rect.max.y - font->FontSize : top - font->FontSize;
    if (right - left >= width + 2 && line >= rect.min.y) {
      ui::text_at(list, font, ImVec2((left + right - width) / 2, line), theme.text, text);
    }
  }
}

void PipelinePane::paint_labels(std::size_t row) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Theme& theme = ui::theme();
  const ImFont* font = ui::state().fonts.small;
  const PipelineRow& it = grid_->rows[row];
  const Rect rect = row_rect(row);
  const float width = at_.labels.width() - scaled(6);
  const float line = font->FontSize + 1;
  ui::text_at(list,
              font,
              ImVec2(at_.labels.min.x, rect.min.y),
              theme.text,
              ui::elided(*font, stages_text(it), width));
  if (rect.height() >= 2 * line) {
    ui::text_at(list,
                font,
                ImVec2(at_.labels.min.x, rect.min.y + line),
                theme.muted,
                ui::elided(*font, fmt::format("rank {}", it.rank), width));
  }
  const std::string bubble =
      ui::trf(S::kPipeBubble, fmt::format("{:.1f}", 100 * grid_->bubble(it)));
  ui::tag_rect(fmt::format("pipeline.bubble.{}", it.coordinate), rect.min, rect.max, bubble);
  ui::tag_rect(fmt::format("pipeline.peak.{}", it.coordinate),
               rect.min,
               rect.max,
               std::to_string(it.peak_live));
  if (at_.gutter.width() <= 0) {
    return;
  }
  std::vector<std::string> lines{bubble, ui::trf(S::kPipePeak, it.peak_live)};
  if (grid_->ticks_per_unit == 0) {
    lines.push_back(bytes_text(it.peak_activation_bytes));
  }
  float y = rect.min.y;
  for (const std::string& text : lines) {
    if (y + font->FontSize > rect.max.y + 1) {
      break;
    }
    ui::text_at(list,
                font,
                ImVec2(at_.gutter.min.x + scaled(6), y),
                y == rect.min.y ? theme.text : theme.muted,
                ui::elided(*font, text, at_.gutter.width() - scaled(6)));
    y += line;
  }
}

void PipelinePane::paint_choice(const PipelineChoice& choice) const {
  if (!choice.cursor || *choice.cursor < from_ || *choice.cursor > from_ + length_) {
    return;
  }
  const float x = x_of(*choice.cursor);
  ImGui::GetWindowDrawList()->AddRectFilled(
      ImVec2(x, at_.head.max.y), ImVec2(x + 1, at_.body.max.y), ui::theme().cursor);
}

void PipelinePane::paint_tooltip(std::int64_t origin) const {
  if (drag_ || !ImGui::IsItemHovered()) {
    return;
  }
  const std::optional<ActionPlace> place = cell_under(ImGui::GetIO().MousePos);
  if (!place) {
    return;
  }
  const PipelineCell& cell = grid_->rows[static_cast<std::size_t>(place->rank)]
                                 .cells[static_cast<std::size_t>(place->index)];
  ImGui::BeginTooltip();
  const std::string text = fmt::format("{}: {} {}, {} - {}",
                                       cell_text(*grid_, cell),
                                       ui::tr(S::kPipeStage),
                                       cell.stage,
                                       grid_time_text(*grid_, cell.begin - origin),
                                       grid_time_text(*grid_, cell.end - origin));
  ImGui::TextUnformatted(text.c_str());
  ImGui::EndTooltip();
}

void PipelinePane::paint_drop(const ActionPlace& from, const ActionPlace& to, bool refused) const {
  const std::vector<PipelineCell>& cells = grid_->rows[static_cast<std::size_t>(to.rank)].cells;
  const bool same_row = from.rank == to.rank;
  std::int32_t index = to.index;  // among all cells
  index += same_row && index >= from.index ? 1 : 0;
  const bool last = index >= static_cast<std::int32_t>(cells.size());
  const std::int64_t time = cells.empty() ? grid_->begin
                            : last        ? cells.back().end
                                          : cells[static_cast<std::size_t>(index)].begin;
  const Rect rect = cells_rect(static_cast<std::size_t>(to.rank));
  const ImU32 colour = refused ? ui::theme().bad : ui::theme().good;
  const float x = std::clamp(x_of(time), rect.min.x, rect.max.x);
  const float half = std::max(1.0F, scaled(1.5F));
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled(
      ImVec2(x - half, rect.min.y - scaled(3)), ImVec2(x + half, rect.max.y + scaled(3)), colour);
  // A cross where it cannot go, told without colour.
  if (refused) {
    const float arm = scaled(5);
    list.AddLine(ImVec2(x - arm, rect.min.y), ImVec2(x + arm, rect.min.y + 2 * arm), colour, half);
    list.AddLine(ImVec2(x + arm, rect.min.y), ImVec2(x - arm, rect.min.y + 2 * arm), colour, half);
  }
}

}  // namespace lockstep::views
