// StepsView: columns of chunk cells, on a circle or in a row, and the moves between them.
#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "core/report_text.h"
#include "visualizer/models/collective_steps_text.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/steps_parts.h"
#include "visualizer/views/steps_view.h"

namespace lockstep::views {
namespace {

using ui::Rect;
using ui::S;
using ui::scaled;
using view::StepMove;

constexpr double kTurn = 6.283185307179586;

bool overlap(const Rect& a, const Rect& b) {
  return a.min.x < b.max.x && b.min.x < a.max.x && a.min.y < b.max.y && b.min.y < a.max.y;
}

ImVec2 centre_of(const Rect& rect) {
  return {(rect.min.x + rect.max.x) / 2, (rect.min.y + rect.max.y) / 2};
}

}  // namespace

bool StepsView::place_circle(const Rect& area) {
  const int ranks = steps_->ranks();
  const float head = line_height();
  cell_height_ = std::floor(ui::state().fonts.small->FontSize + scaled(7));
  drawn_chunks_ = static_cast<int>(steps_->chunks().size());
  const ImVec2 cells(std::floor(scaled(66)), cell_height_ * static_cast<float>(drawn_chunks_));
  const ImVec2 whole(cells.x, cells.y + 2 * head);
  const ImVec2 middle = centre_of(area);
  const float x_radius = std::min((area.width() - whole.x) / 2, scaled(420));
  const float y_radius = (area.height() - whole.y) / 2;
  columns_.clear();
  std::vector<Rect> taken;
  for (int rank = 0; rank < ranks; ++rank) {
    const double angle = kTurn * rank / ranks - kTurn / 4;
    const float x = middle.x + x_radius * static_cast<float>(std::cos(angle));
    const float y = middle.y + y_radius * static_cast<float>(std::sin(angle));
    const ImVec2 min(std::floor(x - whole.x / 2), std::floor(y - whole.y / 2));
    const float gap = scaled(14);
    const Rect with_gap{ImVec2(min.x - gap, min.y), ImVec2(min.x + whole.x + gap, min.y + whole.y)};
    for (const Rect& other : taken) {
      if (overlap(other, with_gap)) {
        return false;
      }
    }
    taken.push_back(with_gap);
    columns_.push_back(
        {ImVec2(min.x, min.y + head), ImVec2(min.x + cells.x, min.y + head + cells.y)});
  }
  return x_radius > 0 && y_radius >= 0;
}

void StepsView::place_row(const Rect& area) {
  const auto ranks = static_cast<float>(steps_->ranks());
  const float head = line_height();
  const float room = area.width() / ranks;
  const float width = std::floor(std::clamp(room * 0.62F, 1.0F, scaled(90)));
  const float height = std::max(head, area.height() - 3.5F * head);
  const auto chunks = static_cast<int>(steps_->chunks().size());
  cell_height_ = std::floor(
      std::clamp(height / static_cast<float>(std::max(1, chunks)), head + scaled(2), scaled(34)));
  drawn_chunks_ = std::clamp(static_cast<int>(height / cell_height_), 1, std::max(1, chunks));
  // Arrows to ranks further on bow over the columns.
  const float top = std::floor(area.min.y + 2.5F * head);
  columns_.clear();
  for (int rank = 0; rank < steps_->ranks(); ++rank) {
    const float left =
        std::floor(area.min.x + room * static_cast<float>(rank) + (room - width) / 2);
    columns_.push_back(
        {ImVec2(left, top),
         ImVec2(left + width, top + cell_height_ * static_cast<float>(drawn_chunks_))});
  }
}

Rect StepsView::cell_rect(int rank, int chunk) const {
  const Rect& column = columns_[static_cast<std::size_t>(rank)];
  const float top = column.min.y + cell_height_ * static_cast<float>(chunk);
  return {ImVec2(column.min.x, top), ImVec2(column.max.x, top + cell_height_ - 2)};
}

std::optional<StepsView::Cell> StepsView::cell_under(const ImVec2& point) const {
  for (int rank = 0; rank < steps_->ranks(); ++rank) {
    for (int chunk = 0; chunk < drawn_chunks_; ++chunk) {
      if (cell_rect(rank, chunk).contains(point)) {
        return Cell{rank, chunk};
      }
    }
  }
  return std::nullopt;
}

const StepMove* StepsView::move_into(const Cell& cell) const {
  if (step() == nullptr) {
    return nullptr;
  }
  const StepMove* found = nullptr;
  for (const StepMove& move : step()->moves) {
    if (move.dst == cell.rank && move.chunk == cell.chunk) {
      found = &move;
    }
  }
  return found;
}

/// The set in words; a bar as long as the part of the ranks that is in it; an edge where it has
/// just come.
void StepsView::paint_cell(const Cell& cell) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Theme& theme = ui::theme();
  const ImFont* font = ui::state().fonts.small;
  const Rect rect = cell_rect(cell.rank, cell.chunk);
  const view::RankSet set = now_.at(cell.rank, cell.chunk);
  const StepMove* move = move_into(cell);
  list.AddRectFilled(rect.min, rect.max, theme.raised);
  const float part = static_cast<float>(std::popcount(set)) / static_cast<float>(steps_->ranks());
  const float bar = std::max(2.0F, std::floor(scaled(3)));
  const bool complete = set == view::all_of(steps_->ranks());
  list.AddRectFilled(ImVec2(rect.min.x, rect.max.y - bar),
                     ImVec2(std::floor(rect.min.x + rect.width() * part), rect.max.y),
                     complete ? theme.good : theme.accent);
  if (move != nullptr) {
    list.AddRect(rect.min,
                 rect.max,
                 move->reduces ? theme.accent : theme.good,
                 0,
                 0,
                 std::max(1.0F, scaled(1.5F)));
  }
  std::string text = view::rank_set_text(set, steps_->ranks());
  ui::tag_rect(fmt::format("steps.cell.{}.{}", cell.rank, cell.chunk), rect.min, rect.max, text);
  if (move != nullptr) {
    text = (move->reduces ? "+ " : "= ") + text;
  }
  const std::string shown = ui::elided(*font, text, rect.width() - 4);
  const float width = ui::text_width(*font, shown);
  ui::text_at(list,
              font,
              ImVec2((rect.min.x + rect.max.x - width) / 2,
                     (rect.min.y + rect.max.y - bar - font->FontSize) / 2),
              theme.text,
              shown);
  if (selected_ && selected_->rank == cell.rank && selected_->chunk == cell.chunk) {
    list.AddRect(rect.min, rect.max, theme.cursor, 0, 0, std::max(2.0F, scaled(2)));
  }
}

void StepsView::paint_column(int rank) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImFont* font = ui::state().fonts.small;
  const Rect& column = columns_[static_cast<std::size_t>(rank)];
  const float room = column.width() + scaled(22);
  const auto centred = [&](float y, ImU32 colour, const std::string& text) {
    const std::string shown = ui::elided(*font, text, room);
    const float x = (column.min.x + column.max.x - ui::text_width(*font, shown)) / 2;
    ui::text_at(list, font, ImVec2(x, y), colour, shown);
  };
  centred(column.min.y - line_height(), ui::theme().text, fmt::format("rank {}", rank));
  const std::int64_t sent = sent_[static_cast<std::size_t>(rank)];
  centred(column.max.y, ui::theme().muted, ui::trf(S::kStepsSent, bytes_text(sent)));
  ui::tag_rect(fmt::format("steps.sent.{}", rank), column.min, column.max, std::to_string(sent));
  for (int chunk = 0; chunk < drawn_chunks_; ++chunk) {
    paint_cell({rank, chunk});
  }
}

/// From edge to edge, a little to the right of the straight way, so that an arrow back is beside.
void StepsView::paint_arrow(const StepMove& move) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Theme& theme = ui::theme();
  const Rect from = cell_rect(move.src, move.chunk);
  const Rect to = cell_rect(move.dst, move.chunk);
  // From side to side; an arrow back lies a little lower.
  const float across = centre_of(to).x - centre_of(from).x;
  const bool right = across >= 0;
  const bool above = std::abs(across) < from.width();
  const float lower = scaled(right ? -3 : 3);
  ImVec2 begin(right ? from.max.x : from.min.x, centre_of(from).y + lower);
  ImVec2 end(right == above ? to.max.x : to.min.x, centre_of(to).y + lower);
  float bow = 0;
  if (in_row_ && std::abs(move.src - move.dst) > 1) {  // over the columns between
    begin = ImVec2(centre_of(from).x, from.min.y);
    end = ImVec2(centre_of(to).x, to.min.y);
    bow = begin.y - columns_.front().min.y + 2.2F * line_height();
  }
  const float x = end.x - begin.x;
  const float y = end.y - begin.y;
  const float length = std::max(1.0F, std::sqrt(x * x + y * y));
  const ImU32 colour = move.reduces ? theme.accent : theme.good;
  const ImVec2 first(begin.x + x * 0.15F, begin.y - bow);
  const ImVec2 second(end.x - x * 0.15F, end.y - bow);
  list.AddBezierCubic(begin,
                      bow == 0 ? begin : first,
                      bow == 0 ? end : second,
                      end,
                      colour,
                      std::max(1.5F, scaled(1.5F)),
                      bow == 0 ? 1 : 24);
  const ImVec2 heading = bow == 0 ? ImVec2(x / length, y / length) : ImVec2(0, 1);
  const float size = scaled(8);
  const ImVec2 base(end.x - heading.x * size, end.y - heading.y * size);
  list.AddTriangleFilled(end,
                         ImVec2(base.x - heading.y * size / 2, base.y + heading.x * size / 2),
                         ImVec2(base.x + heading.y * size / 2, base.y - heading.x * size / 2),
                         colour);
  // What it does and what it carries, on a plate: not by colour alone.
  const ImFont* font = ui::state().fonts.small;
  const std::string text = fmt::format("{}{}", move.reduces ? "+" : "=", move.chunk);
  const float width = ui::text_width(*font, text);
  const float room = bow == 0 ? length - 2 * size : std::abs(x);
  if (room < width) {
    return;
  }
  const ImVec2 middle((begin.x + end.x) / 2, (begin.y + end.y) / 2 - 0.75F * bow);
  const ImVec2 at(std::floor(middle.x - width / 2), std::floor(middle.y - font->FontSize / 2));
  list.AddRectFilled(
      ImVec2(at.x - 2, at.y), ImVec2(at.x + width + 2, at.y + font->FontSize), theme.panel);
  ui::text_at(list, font, at, theme.text, text);
}

void StepsView::paint_arrows() const {
  if (step() == nullptr) {
    return;
  }
  for (const StepMove& move : step()->moves) {
    if (move.chunk >= 0 && move.chunk < drawn_chunks_ && move.src != move.dst) {
      paint_arrow(move);
    }
  }
}

void StepsView::draw_picture() {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  ImVec2 size = ImGui::GetContentRegionAvail();
  size.y = std::max(size.y, 8 * line_height());
  const Rect area{origin, ImVec2(origin.x + size.x, origin.y + size.y)};
  ImGui::InvisibleButton("##picture", ImVec2(std::max(1.0F, size.x), size.y));
  ui::tag("steps.picture");
  in_row_ = !circle_ || !place_circle(area);
  if (in_row_) {
    place_row(area);
  }
  if (ImGui::IsItemClicked()) {
    selected_ = cell_under(ImGui::GetIO().MousePos);
  }
  for (int rank = 0; rank < steps_->ranks(); ++rank) {
    paint_column(rank);
  }
  paint_arrows();
}

}  // namespace lockstep::views
