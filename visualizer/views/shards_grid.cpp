// ShardsView: units over ranks, each cell a strip of shards.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui.h>

#include "visualizer/ui/state.h"
#include "visualizer/views/readouts.h"
#include "visualizer/views/shards_parts.h"
#include "visualizer/views/shards_view.h"

namespace lockstep::views {
namespace {

using ui::Look;
using ui::Rect;
using ui::S;
using ui::scaled;
using view::ShardStage;
using view::ShardState;

/// A strip of `count` shards, of which the rank keeps `own`.
struct Strip {
  std::size_t own = 0;
  std::size_t count = 1;
};

Rect shard_rect(const Rect& rect, const Strip& strip) {
  const float width = rect.width() / static_cast<float>(strip.count);
  const float left = std::floor(rect.min.x + width * static_cast<float>(strip.own));
  return {ImVec2(left, rect.min.y),
          ImVec2(std::max(left + 2, std::floor(left + width)), rect.max.y)};
}

void draw_joints(ImDrawList& list, const Rect& rect, const Strip& strip) {
  const float width = rect.width() / static_cast<float>(strip.count);
  if (width < scaled(4)) {
    return;
  }
  for (std::size_t i = 1; i < strip.count; ++i) {
    const float x = std::floor(rect.min.x + width * static_cast<float>(i));
    list.AddRectFilled(ImVec2(x, rect.min.y), ImVec2(x + 1, rect.max.y), ui::theme().panel);
  }
}

void draw_strip(const Rect& rect, const Strip& strip, ShardStage stage, const Look* own) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  ui::box(list, rect, strip_look(stage), rect);
  if (own != nullptr) {
    const Rect shard = shard_rect(rect, strip);
    ui::box(list, shard, *own, rect);
  }
  draw_joints(list, rect, strip);
}

}  // namespace

ShardsView::Grid ShardsView::grid(const ImVec2& size) const {
  Grid grid;
  grid.names = std::floor(std::min(scaled(120), size.x * 0.22F));
  grid.states = std::floor(std::min(scaled(160), size.x * 0.26F));
  const float room = size.x - grid.names - grid.states - ImGui::GetStyle().ScrollbarSize;
  grid.cell =
      std::floor(std::clamp(room / static_cast<float>(columns_.size()), scaled(16), scaled(150)));
  const auto rows = static_cast<float>(std::max<std::size_t>(1, shards().units().size()));
  grid.row = std::floor(std::clamp(size.y / rows, scaled(22), scaled(34)));
  return grid;
}

void ShardsView::draw_head(const Grid& grid) const {
  const ImFont* font = ui::state().fonts.small;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const auto text = [&](float x, float width, const std::string& words) {
    ui::text_at(list, font, ImVec2(x, at.y), ui::theme().muted, ui::elided(*font, words, width));
  };
  const std::string unit =
      columns_.size() == group_size_
          ? std::string(ui::tr(S::kShardsUnit))
          : fmt::format("{} ({})",
                        ui::tr(S::kShardsUnit),
                        ui::trf(S::kShardsColumns, columns_.size(), group_size_));
  text(at.x, grid.names - scaled(6), unit);
  text(at.x + grid.names, grid.states - scaled(6), ui::tr(S::kShardsNow));
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string words = ui::trf(S::kRankAlone, columns_[i].rank);
    const bool wide = ui::text_width(*font, words) <= grid.cell - scaled(4);
    text(at.x + grid.names + grid.states + static_cast<float>(i) * grid.cell,
         grid.cell,
         wide ? words : std::to_string(columns_[i].rank));
  }
  ImGui::Dummy(ImVec2(1, font->FontSize));
}

void ShardsView::draw_cell(const Rect& cell, const Column& column, std::size_t unit) const {
  if (unit >= states_[column.model].size()) {
    return;
  }
  const ShardState& state = states_[column.model][unit];
  const auto shards =
      static_cast<std::size_t>(std::max(1, models_[column.model]->units()[unit].shards));
  const Strip strip{std::min(column.shard, shards - 1), shards};
  const float split = std::floor(cell.min.y + cell.height() * 0.6F);
  const Rect upper{cell.min, ImVec2(cell.max.x, split - 1)};
  const Rect lower{ImVec2(cell.min.x, split), cell.max};
  const bool whole =
      state.parameters == ShardStage::kGathered || state.parameters == ShardStage::kUsed;
  const Look& parameter = memory_look(Category::kParameter);
  draw_strip(upper, strip, state.parameters, whole ? nullptr : &parameter);
  const Look reduced = reduced_look();
  draw_strip(
      lower, strip, state.gradients, state.gradients == ShardStage::kReduced ? &reduced : nullptr);
}

void ShardsView::draw_row(const Grid& grid,
                          std::size_t unit,
                          const ImVec2& at,
                          bool selected) const {
  const ImFont* font = ui::state().fonts.small;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float y = at.y + (grid.row - font->FontSize) / 2;
  const auto text = [&](float x, float width, const std::string& words, ImU32 colour) {
    ui::text_at(list, font, ImVec2(x, y), colour, ui::elided(*font, words, width - scaled(6)));
  };
  const float cells = at.x + grid.names + grid.states;
  if (selected) {
    const float right = cells + grid.cell * static_cast<float>(columns_.size());
    list.AddRectFilled(at, ImVec2(right, at.y + grid.row), ui::theme().selection);
  }
  text(at.x + scaled(2), grid.names, shards().units()[unit].name, ui::theme().text);
  const ShardState& state = states_.front()[unit];
  const char* gradients =
      state.gradient_interval == nullptr ? ui::tr(S::kStageNone) : stage_text(state.gradients);
  text(at.x + grid.names,
       grid.states,
       fmt::format("{}, {}", stage_text(state.parameters), gradients),
       ui::theme().muted);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const float x = cells + static_cast<float>(i) * grid.cell;
    const Rect cell{ImVec2(x, at.y + scaled(2)),
                    ImVec2(x + grid.cell - scaled(5), at.y + grid.row - scaled(1))};
    draw_cell({ImVec2(cell.min.x, std::floor(cell.min.y)),
               ImVec2(std::floor(cell.max.x), std::floor(cell.max.y))},
              columns_[i],
              unit);
  }
}

/// While time moves, the unit in use stays in sight; so does one that is newly selected.
void ShardsView::follow(const Grid& grid, const std::optional<std::size_t>& selected) {
  const auto top_of = [&](std::size_t unit) { return static_cast<float>(unit) * grid.row; };
  if (selected && selected != followed_unit_) {
    const float top = top_of(*selected);
    const float scroll = ImGui::GetScrollY();
    if (top < scroll || top + grid.row > scroll + ImGui::GetWindowHeight()) {
      ImGui::SetScrollY(std::max(0.0F, top - ImGui::GetWindowHeight() / 2));
    }
  }
  followed_unit_ = selected;
  if (followed_ == now_) {
    return;
  }
  followed_ = now_;
  const std::vector<ShardState>& states = states_.front();
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool busy =
        states[i].parameters == ShardStage::kUsed || states[i].gradients == ShardStage::kReducing;
    // The first unit often stays whole all the time: it says nothing about where work is.
    if (busy && (i > 0 || states.size() == 1)) {
      ImGui::SetScrollY(std::max(0.0F, top_of(i) - ImGui::GetWindowHeight() / 2));
      return;
    }
  }
}

void ShardsView::draw_grid(app::Session& session, const ImVec2& size) {
  const float head = ui::state().fonts.small->FontSize + ImGui::GetStyle().ItemSpacing.y;
  const Grid grid = this->grid(ImVec2(size.x, size.y - head));
  draw_head(grid);
  ImGui::BeginChild("##grid", ImVec2(size.x, size.y - head), false, ImGuiWindowFlags_NoNav);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const std::optional<std::size_t> selected = selected_unit(session);
  for (std::size_t i = 0; i < shards().units().size(); ++i) {
    const ImVec2 at(std::floor(origin.x), std::floor(origin.y + static_cast<float>(i) * grid.row));
    ImGui::SetCursorScreenPos(at);
    ImGui::PushID(static_cast<int>(i));
    const float width = grid.names + grid.states + grid.cell * static_cast<float>(columns_.size());
    if (ImGui::InvisibleButton("##unit", ImVec2(width, grid.row))) {
      select(session, i);
    }
    ImGui::PopID();
    const ShardState& state = states_.front()[i];
    ui::tag("unit." + shards().units()[i].name,
            fmt::format("{} {}", view::name_of(state.parameters), view::name_of(state.gradients)));
    if (ImGui::IsItemVisible()) {
      draw_row(grid, i, at, selected == i);
    }
  }
  follow(grid, selected);
  ImGui::EndChild();
}

}  // namespace lockstep::views
