#include "visualizer/views/pipeline_pane.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "core/report_text.h"
#include "visualizer/models/timeline_text.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/pipeline_pane_parts.h"

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
