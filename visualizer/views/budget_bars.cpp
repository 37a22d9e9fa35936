// BudgetView: the memory of the chosen strategy as bars, a segment for every category.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/report_text.h"
#include "visualizer/models/memory_stack_text.h"
#include "visualizer/ui/reasons.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/budget_parts.h"
#include "visualizer/views/budget_view.h"

namespace lockstep::views {
namespace {

using ui::Rect;
using ui::S;
using ui::scaled;
using view::BudgetBar;
using view::BudgetSegment;

constexpr std::size_t kTooltipTerms = 8;

constexpr std::int64_t kFarAway = 6;  ///< times the longest bar: the device's line is not in sight

ui::Look look_of(const BudgetSegment& segment) {
  if (segment.margin) {
    return {ui::theme().panel, ui::theme().text, ui::Hatch::kDiagonal, true};
  }
  const std::size_t index =
      segment.category ? static_cast<std::size_t>(*segment.category) : kCategoryCount;
  return ui::theme().memory[index];
}

char letter_of(const BudgetSegment& segment) {
  return segment.margin ? '?' : segment.category ? view::letter_of(*segment.category) : 'X';
}

/// Of the legend: what is outside of the plan and margins are one entry each.
std::string_view kind_of(const BudgetSegment& segment) {
  if (segment.margin) {
    return ui::tr(S::kBudgetMargin);
  }
  return segment.category ? ui::term(segment.name) : ui::tr(S::kBudgetOutside);
}

}  // namespace

void BudgetView::draw_bar(const Rect& place, std::size_t bar, double pixels_per_byte) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const BudgetBar& it = bars_[bar];
  const auto x = [&](std::int64_t bytes) {
    return place.min.x +
           std::floor(static_cast<float>(static_cast<double>(bytes) * pixels_per_byte));
  };
  for (std::size_t i = 0; i < it.segments.size(); ++i) {
    const BudgetSegment& segment = it.segments[i];
    Rect box{ImVec2(x(segment.begin_bytes), place.min.y),
             ImVec2(x(segment.end_bytes), place.max.y)};
    if (box.width() < 1) {
      continue;
    }
    const ui::Look look = look_of(segment);
    const bool chosen = segment_ && segment_->bar == bar && segment_->segment == i;
    const float em = ui::state().fonts.small->FontSize;
    Rect painted = box;
    painted.max.x -= painted.width() > scaled(4) ? 1.0F : 0.0F;
    ui::box(list, painted, look, place);
    if (box.width() >= 4 * em) {
      const std::string_view name =
          segment.category ? ui::term(segment.name) : std::string_view(segment.name);
      ui::label(list, box, look, fmt::format("{} {}", name, bytes_text(segment.bytes())));
    } else if (box.width() >= em) {
      ui::letter(list, box, look, letter_of(segment));
    }
    ImGui::SetCursorScreenPos(box.min);
    const std::string id = fmt::format("budget.bar.{}.{}", bar, segment.name);
    if (ImGui::InvisibleButton(id.c_str(), ImVec2(box.width(), box.height()))) {
      segment_ = chosen ? std::nullopt : std::optional(SegmentRef{bar, i});
    }
    ui::tag(id, std::to_string(segment.bytes()));
    if (ImGui::IsItemHovered()) {
      tooltip({bar, i});
    }
    if (chosen) {
      list.AddRect(box.min, box.max, ui::theme().cursor, 0, 0, std::floor(scaled(2)));
    }
  }
}

void BudgetView::draw_device_line(const BarsLayout& at) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float line = std::max(2.0F, std::floor(scaled(2)));
  const std::int64_t bytes = bars_.front().device_bytes;
  std::string text = ui::trf(S::kBudgetDevice, bytes_text(bytes));
  const double right = static_cast<double>(bytes) * at.pixels_per_byte;
  const bool seen = right <= static_cast<double>(at.area.width());
  text += seen ? "" : " \xE2\x86\x92";
  const float x = seen ? at.area.min.x + std::floor(static_cast<float>(right)) : at.area.max.x;
  if (seen) {
    list.AddRectFilled(
        ImVec2(x, at.area.min.y), ImVec2(x + line, at.area.max.y), ui::theme().critical);
  }
  const ImFont* font = ui::state().fonts.small;
  const float width = ui::text_width(*font, text) + scaled(5);
  const float left = x + width < at.area.max.x ? x + scaled(5) : x - width;
  const ImVec2 place(std::max(at.area.min.x, left), at.area.min.y);
  ui::text_at(list, font, place, ui::theme().text, text);
  ui::tag_rect("budget.device", place, at.area.max, std::to_string(bytes));
}

BudgetView::BarsLayout BudgetView::bars_layout() const {
  BarsLayout at;
  std::int64_t full = 1;
  for (const BudgetBar& bar : bars_) {
    full = std::max(full, bar.upper_bound_bytes);
    at.label = std::max(at.label, ui::text_width(*ui::state().fonts.small, bar_title(bar)));
  }
  const ImVec2 size = ImGui::GetContentRegionAvail();
  at.label = std::floor(std::min(at.label + scaled(10), size.x / 3));
  at.head = std::floor(scaled(18));
  const float legend = ui::state().fonts.small->FontSize * 3.4F;
  const auto count = static_cast<float>(bars_.size());
  at.bar = std::floor(
      std::clamp((size.y - at.head - legend) / count - scaled(6), scaled(22), scaled(48)));
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  at.area = {ImVec2(origin.x + at.label, origin.y),
             ImVec2(origin.x + size.x, origin.y + at.head + count * (at.bar + scaled(6)))};
  // A device that is far larger would leave nothing to see of the bars.
  const std::int64_t device = bars_.front().device_bytes;
  full = device <= kFarAway * full ? std::max(full, device) : full;
  at.pixels_per_byte = static_cast<double>(at.area.width()) / (static_cast<double>(full) * 1.04);
  return at;
}

void BudgetView::draw_legend() const {
  std::vector<const BudgetSegment*> kinds;
  for (const BudgetBar& bar : bars_) {
    for (const BudgetSegment& segment : bar.segments) {
      const bool there = std::any_of(kinds.begin(), kinds.end(), [&](const BudgetSegment* it) {
        return letter_of(*it) == letter_of(segment);
      });
      if (!there) {
        kinds.push_back(&segment);
      }
    }
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float end = origin.x + ImGui::GetContentRegionAvail().x;
  const float line = std::floor(ui::state().fonts.small->FontSize * 1.6F);
  ImVec2 at = origin;
  for (const BudgetSegment* it : kinds) {
    const std::string_view name = kind_of(*it);
    const float width = scaled(30) + ui::text_width(*ui::state().fonts.small, name);
    if (at.x > origin.x && at.x + width > end) {
      at = ImVec2(origin.x, at.y + line);
    }
    at.x += std::floor(ui::legend_entry(list, at, look_of(*it), letter_of(*it), name) + scaled(14));
  }
  ImGui::Dummy(ImVec2(1, at.y - origin.y + line));
}

void BudgetView::draw_bars() {
  ImGui::TextUnformatted(ui::trf(S::kBudgetBarsOf, title_of(table_->words()[row_])).c_str());
  if (seen_ <= row_) {
    muted_text(ui::tr(S::kBudgetComputing));
    return;
  }
  if (bars_.empty()) {
    const std::string reason = ui::reason_text(budget_->rows()[row_].note);
    muted_text(ui::trf(S::kBudgetNoBars, reason));
    ui::tag("budget.refused", reason);
    return;
  }
  const float least = scaled(90);
  ImGui::BeginChild("##bars", ImVec2(0, std::max(least, ImGui::GetContentRegionAvail().y)));
  const BarsLayout at = bars_layout();
  const ImFont* font = ui::state().fonts.small;
  for (std::size_t i = 0; i < bars_.size(); ++i) {
    const float top =
        std::floor(at.area.min.y + at.head + static_cast<float>(i) * (at.bar + scaled(6)));
    ui::text_at(*ImGui::GetWindowDrawList(),
                font,
                ImVec2(at.area.min.x - at.label, top + (at.bar - font->FontSize) / 2),
                ui::theme().text,
                ui::elided(*font, bar_title(bars_[i]), at.label - scaled(6)));
    const Rect place{ImVec2(at.area.min.x, top), ImVec2(at.area.max.x, top + at.bar)};
    draw_bar(place, i, at.pixels_per_byte);
  }
  draw_device_line(at);
  ImGui::SetCursorScreenPos(ImVec2(at.area.min.x - at.label, at.area.max.y + scaled(4)));
  draw_legend();
  ImGui::EndChild();
}

view::DetailLines BudgetView::segment_details(const SegmentRef& at) const {
  const BudgetBar& bar = bars_[at.bar];
  const BudgetSegment& segment = bar.segments[at.segment];
  view::DetailLines lines;
  lines.emplace_back("where", fmt::format("{}, {}", table_->words()[row_], bar_title(bar)));
  lines.emplace_back("what", fmt::format("{} ({})", ui::term(segment.name), kind_of(segment)));
  lines.emplace_back(
      "bytes", fmt::format("{} ({} B)", bytes_text(segment.bytes()), grouped(segment.bytes())));
  if (!segment.margin) {
    const double share = static_cast<double>(segment.bytes()) /
                         static_cast<double>(std::max<std::int64_t>(1, bar.peak_bytes));
    lines.emplace_back("share of the peak", view::percent_text(share));
  }
  for (const MemoryTerm& term : segment.terms) {
    lines.emplace_back(term.name,
                       fmt::format("{} = {}{}",
                                   term.formula,
                                   bytes_text(term.bytes),
                                   term.source.empty() ? "" : fmt::format(" [{}]", term.source)));
  }
  return lines;
}

void BudgetView::tooltip(const SegmentRef& at) const {
  const BudgetSegment& segment = bars_[at.bar].segments[at.segment];
  ImGui::BeginTooltip();
  ImGui::TextUnformatted(
      fmt::format("{}: {}", ui::term(segment.name), bytes_text(segment.bytes())).c_str());
  for (std::size_t i = 0; i < std::min(kTooltipTerms, segment.terms.size()); ++i) {
    const MemoryTerm& term = segment.terms[i];
    ImGui::TextUnformatted(
        fmt::format("{}: {} = {}", term.name, term.formula, bytes_text(term.bytes)).c_str());
  }
  if (segment.terms.size() > kTooltipTerms) {
    ImGui::TextUnformatted("\xE2\x80\xA6");
  }
  ImGui::EndTooltip();
}

}  // namespace lockstep::views
