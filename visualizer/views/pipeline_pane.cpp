#include "visualizer/views/pipeline_pane.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "core/report_text.h"
#include "visualizer/models/timeline_text.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

using ui::Rect;
using ui::S;
using ui::scaled;
using view::PipelineCell;
using view::PipelineGrid;
using view::PipelineRow;

constexpr float kDragPixels = 4;
constexpr std::int64_t kShortest = 4;  ///< of a window

ImU32 mixed(ImU32 a, ImU32 b, float part) {
  const ImVec4 from = ImGui::ColorConvertU32ToFloat4(a);
  const ImVec4 to = ImGui::ColorConvertU32ToFloat4(b);
  return ImGui::ColorConvertFloat4ToU32(ImVec4(from.x + (to.x - from.x) * part,
                                               from.y + (to.y - from.y) * part,
                                               from.z + (to.z - from.z) * part,
                                               1));
}

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

std::string stages_text(const PipelineRow& row) {
  std::vector<int> stages;
  for (const PipelineCell& cell : row.cells) {
    if (std::find(stages.begin(), stages.end(), cell.stage) == stages.end()) {
      stages.push_back(cell.stage);
    }
  }
  std::sort(stages.begin(), stages.end());
  return fmt::format("{} {}", ui::tr(S::kPipeStage), fmt::join(stages, ","));
}

}  // namespace

std::string grid_time_text(const PipelineGrid& grid, std::int64_t time) {
  return grid.ticks_per_unit == 0
             ? view::time_text(time, true)
             : fmt::format("{:g}",
                           static_cast<double>(time) / static_cast<double>(grid.ticks_per_unit));
}

std::string cell_text(const PipelineGrid& grid, const PipelineCell& cell) {
  std::string text = fmt::format("{}{}", view::letter_of(cell.kind), cell.microbatch);
  if (grid.chunks > 1) {
    text += static_cast<char>('a' + cell.chunk % 26);
  }
  return text;
}

ui::Look cell_look(const PipelineGrid& grid, const PipelineCell& cell) {
  const ui::Theme& theme = ui::theme();
  ui::Look look = theme.look(paint_of(cell.kind));
  if (grid.chunks > 1 && cell.chunk > 0) {
    const float part =
        0.45F * static_cast<float>(cell.chunk) / static_cast<float>(std::max(1, grid.chunks - 1));
    look.fill = mixed(look.fill, theme.background, part);
    for (const ImU32 text : {theme.text, theme.background}) {
      if (ui::contrast(text, look.fill) > ui::contrast(look.text, look.fill)) {
        look.text = text;
      }
    }
  }
  return look;
}

void PipelinePane::show(const PipelineGrid& grid, const void* identity) {
  grid_ = &grid;
  if (identity == identity_) {
    return;
  }
  identity_ = identity;
  drag_.reset();
  scroll_ = 0;
  fit();
}

void PipelinePane::fit() {
  from_ = grid_->begin;
  length_ = std::max<std::int64_t>(1, grid_->length());
}

void PipelinePane::set_window(std::int64_t from, std::int64_t length) {
  const std::int64_t whole = std::max<std::int64_t>(1, grid_->length());
  length_ = std::clamp(length, std::min(kShortest, whole), whole);
  from_ = std::clamp(from, grid_->begin, grid_->begin + whole - length_);
}

void PipelinePane::zoom(double factor, std::int64_t around) {
  const double part = static_cast<double>(around - from_) / static_cast<double>(length_);
  const auto wanted = static_cast<std::int64_t>(std::ceil(
      std::min(static_cast<double>(length_) * factor, static_cast<double>(grid_->length()) + 1)));
  set_window(around - static_cast<std::int64_t>(part * static_cast<double>(wanted)), wanted);
}

float PipelinePane::x_of(std::int64_t time) const {
  const double part = static_cast<double>(time - from_) / static_cast<double>(length_);
  return std::floor(at_.body.min.x + static_cast<float>(std::clamp(part, -4.0, 5.0) *
                                                        static_cast<double>(at_.body.width())));
}

std::int64_t PipelinePane::time_at(float x) const {
  const double part = static_cast<double>(x - at_.body.min.x) /
                      std::max(1.0, static_cast<double>(at_.body.width()));
  return from_ + static_cast<std::int64_t>(part * static_cast<double>(length_));
}

PipelinePane::Layout PipelinePane::layout(const ImVec2& origin, const ImVec2& size) const {
  const ImFont& small = *ui::state().fonts.small;
  Layout at;
  float labels = scaled(44);
  for (const PipelineRow& row : grid_->rows) {
    labels = std::max(labels, ui::text_width(small, stages_text(row)) + scaled(10));
  }
  labels = std::floor(std::min(labels, size.x * 0.25F));
  // As wide as "activations" or the longest figure beside a row.
  const float gutter =
      size.x < scaled(380)
          ? 0
          : std::floor(ui::text_width(small, ui::trf(S::kPipePeak, 888)) + scaled(14));
  const float head = std::floor(small.FontSize + scaled(6));
  const ImVec2 end(origin.x + size.x, origin.y + size.y);
  at.head = {ImVec2(origin.x + labels, origin.y), ImVec2(end.x - gutter, origin.y + head)};
  at.body = {ImVec2(at.head.min.x, at.head.max.y), ImVec2(at.head.max.x, end.y)};
  at.labels = {ImVec2(origin.x, at.body.min.y), ImVec2(at.body.min.x, end.y)};
  at.gutter = {ImVec2(at.body.max.x, at.body.min.y), end};
  const auto rows = static_cast<float>(std::max<std::size_t>(1, grid_->rows.size()));
  at.row_height = std::floor(std::clamp(at.body.height() / rows, scaled(40), scaled(110)));
  return at;
}

Rect PipelinePane::row_rect(std::size_t row) const {
  const float top = std::floor(at_.body.min.y - scroll_ + static_cast<float>(row) * at_.row_height);
  return {ImVec2(at_.body.min.x, top), ImVec2(at_.body.max.x, top + at_.row_height - scaled(6))};
}

Rect PipelinePane::cells_rect(std::size_t row) const {
  Rect rect = row_rect(row);
  rect.max.y = std::floor(rect.min.y + rect.height() * 0.6F);
  return rect;
}

Rect PipelinePane::live_rect(std::size_t row) const {
  Rect rect = row_rect(row);
  rect.min.y = cells_rect(row).max.y + 1;
  return rect;
}

std::optional<std::size_t> PipelinePane::row_under(float y) const {
  for (std::size_t row = 0; row < grid_->rows.size(); ++row) {
    const Rect rect = row_rect(row);
    if (y >= rect.min.y && y < rect.max.y) {
      return row;
    }
  }
  return std::nullopt;
}

std::optional<ActionPlace> PipelinePane::cell_under(const ImVec2& point) const {
  const std::optional<std::size_t> row = row_under(point.y);
  if (!row || !at_.body.contains(point) || point.y >= cells_rect(*row).max.y) {
    return std::nullopt;
  }
  const std::vector<PipelineCell>& cells = grid_->rows[*row].cells;
  const std::int64_t time = time_at(point.x);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].begin <= time && time < cells[i].end) {
      return ActionPlace{static_cast<std::int32_t>(*row), static_cast<std::int32_t>(i)};
    }
  }
  return std::nullopt;
}

// ---- Input --------------------------------------------------------------------------------------

void PipelinePane::handle_mouse(PipelineChoice& choice, bool movable) {
  const ImGuiIO& io = ImGui::GetIO();
  const ImVec2 origin(at_.labels.min.x, at_.body.min.y);
  ImGui::SetCursorScreenPos(origin);
  ImGui::InvisibleButton(
      "##pipeline",
      ImVec2(std::max(1.0F, at_.gutter.max.x - origin.x), std::max(1.0F, at_.body.height())),
      ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonMiddle);
  ui::tag("pipeline.grid");
  ImGui::SetItemUsingMouseWheel();
  const bool hovered = ImGui::IsItemHovered();
  if (hovered && io.MouseWheel != 0) {
    if (at_.body.contains(io.MousePos) && !io.KeyCtrl) {
      zoom(std::pow(0.8, static_cast<double>(io.MouseWheel)), time_at(io.MousePos.x));
    } else {
      scroll_ -= io.MouseWheel * at_.row_height;
    }
  }
  if (hovered && at_.body.contains(io.MousePos)) {
    choice.cursor = time_at(io.MousePos.x);
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left) && !io.KeyShift) {
      choice.selected = cell_under(io.MousePos);
      drag_.reset();
      if (movable && choice.selected) {
        drag_ = CellDrag{*choice.selected, choice.selected->rank, time_at(io.MousePos.x), false};
      }
    }
  }
  const bool pans =
      ImGui::IsItemActive() && (io.KeyShift || ImGui::IsMouseDown(ImGuiMouseButton_Middle));
  if (pans) {
    const double time = static_cast<double>(io.MouseDelta.x) * static_cast<double>(length_) /
                        std::max(1.0, static_cast<double>(at_.body.width()));
    set_window(from_ - static_cast<std::int64_t>(time), length_);
  }
  if (!drag_) {
    return;
  }
  const bool far = io.MouseDragMaxDistanceSqr[0] >= kDragPixels * kDragPixels;
  drag_->time = time_at(io.MousePos.x);
  drag_->row = static_cast<std::int32_t>(
      row_under(io.MousePos.y).value_or(static_cast<std::size_t>(drag_->from.rank)));
  drag_->dropped = !ImGui::IsMouseDown(ImGuiMouseButton_Left);
  if (far) {
    choice.drag = drag_;
  }
  if (drag_->dropped) {
    drag_.reset();
  }
}

void PipelinePane::walk(PipelineChoice& choice, int direction) const {
  if (!choice.selected) {
    choice.selected = ActionPlace{0, 0};
    return;
  }
  const auto count = static_cast<std::int32_t>(
      grid_->rows[static_cast<std::size_t>(choice.selected->rank)].cells.size());
  choice.selected->index = std::clamp(choice.selected->index + direction, 0, count - 1);
}

/// To the cell of the next row that is nearest in time.
void PipelinePane::change_row(PipelineChoice& choice, int direction) const {
  if (!choice.selected) {
    choice.selected = ActionPlace{0, 0};
    return;
  }
  const PipelineCell& now = grid_->rows[static_cast<std::size_t>(choice.selected->rank)]
                                .cells[static_cast<std::size_t>(choice.selected->index)];
  const std::int32_t row = choice.selected->rank + direction;
  if (row < 0 || row >= static_cast<std::int32_t>(grid_->rows.size())) {
    return;
  }
  const std::vector<PipelineCell>& cells = grid_->rows[static_cast<std::size_t>(row)].cells;
  const auto nearest = std::min_element(
      cells.begin(), cells.end(), [&](const PipelineCell& a, const PipelineCell& b) {
        return std::abs(a.begin - now.begin) < std::abs(b.begin - now.begin);
      });
  choice.selected = ActionPlace{row, static_cast<std::int32_t>(nearest - cells.begin())};
}

void PipelinePane::handle_keys(PipelineChoice& choice) {
  using ui::Key;
  const std::int64_t middle = choice.cursor.value_or(from_ + length_ / 2);
  const bool plain = ui::modifiers_held() == ui::kPlain;
  if (!plain) {
    return;
  }
  if (ui::pressed(Key::kW)) {
    zoom(0.8, middle);
  }
  if (ui::pressed(Key::kS)) {
    zoom(1.25, middle);
  }
  if (ui::pressed(Key::kA)) {
    set_window(from_ - length_ / 10, length_);
  }
  if (ui::pressed(Key::kD)) {
    set_window(from_ + length_ / 10, length_);
  }
  if (ui::pressed(Key::kF, false)) {
    fit();
  }
  if (ui::pressed(Key::kRight)) {
    walk(choice, 1);
  }
  if (ui::pressed(Key::kLeft)) {
    walk(choice, -1);
  }
  if (ui::pressed(Key::kDown)) {
    change_row(choice, 1);
  }
  if (ui::pressed(Key::kUp)) {
    change_row(choice, -1);
  }
}

// ---- Paint --------------------------------------------------------------------------------------

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

void PipelinePane::draw(const PipelineGrid& grid,
                        std::int64_t origin,
                        float below,
                        PipelineChoice& choice,
                        bool movable) {
  grid_ = &grid;
  set_window(from_, length_);
  const ImVec2 place = ImGui::GetCursorScreenPos();
  ImVec2 size = ImGui::GetContentRegionAvail();
  size.y = std::max(scaled(60), size.y - below);
  at_ = layout(place, size);
  const float height = static_cast<float>(grid.rows.size()) * at_.row_height;
  scroll_ = std::clamp(scroll_, 0.0F, std::max(0.0F, height - at_.body.height()));
  at_.body.max.y = std::min(at_.body.max.y, at_.body.min.y + height);
  handle_mouse(choice, movable);
  scroll_ = std::clamp(scroll_, 0.0F, std::max(0.0F, height - at_.body.height()));
  paint_axis(origin);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.PushClipRect(
      ImVec2(at_.labels.min.x, at_.body.min.y), ImVec2(at_.gutter.max.x, at_.body.max.y), true);
  for (std::size_t row = 0; row < grid.rows.size(); ++row) {
    const Rect rect = row_rect(row);
    if (rect.max.y <= at_.body.min.y || rect.min.y >= at_.body.max.y) {
      continue;
    }
    paint_labels(row);
    paint_live(row);
    paint_row(row, choice);
  }
  list.PopClipRect();
  paint_choice(choice);
  paint_tooltip(origin);
  ImGui::SetCursorScreenPos(ImVec2(place.x, at_.body.max.y + scaled(4)));
}

}  // namespace lockstep::views
