#include "visualizer/views/budget_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/report_text.h"
#include "visualizer/models/budget_text.h"
#include "visualizer/models/memory_stack_text.h"
#include "visualizer/models/view_json.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/reasons.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

using ui::Rect;
using ui::S;
using ui::scaled;
using view::BudgetBar;
using view::BudgetRow;
using view::BudgetSegment;

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
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

std::string title_of(const std::string& words) {
  return words == app::kOwnStrategy ? ui::tr(S::kBudgetOwn) : words;
}

std::string note_of(const BudgetRow& row, const StrategyOutcome& outcome) {
  if (row.refused) {
    return ui::tr(S::kBudgetRefused);
  }
  std::string note = row.fastest ? ui::tr(S::kBudgetFastest) : "";
  if (!row.fits) {
    note = ui::trf(S::kBudgetTooMuch, bytes_text(row.peak_bytes - row.device_bytes));
  } else if (!outcome.memory.surely_fits()) {
    note += note.empty() ? "" : "; ";
    note += ui::tr(S::kBudgetMayNotFit);
  }
  return note;
}

/// Of small models three digits remain.
std::string gib_text(double bytes) {
  const double gib = bytes / kGib;
  return gib >= 1 || gib <= 0 ? fmt::format("{:.2f}", gib) : fmt::format("{:.3g}", gib);
}

/// In the column's right, so that digits stand under digits.
void right_text(const std::string& text) {
  const float free = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(text.c_str()).x;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0F, free));
  ImGui::TextUnformatted(text.c_str());
}

void muted_text(const std::string& text) {
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
  ImGui::TextWrapped("%s", text.c_str());
  ImGui::PopStyleColor();
}

std::string bar_title(const BudgetBar& bar) {
  return bar.count > 1 ? ui::trf(S::kBudgetRanks, bar.rank, bar.count)
                       : ui::trf(S::kBudgetRank, bar.rank);
}

}  // namespace

// ---- Model --------------------------------------------------------------------------------------

void BudgetView::use(const ViewContext& context) {
  if (context.document != document_) {
    document_ = context.document;
    table_ = std::make_shared<app::StrategyTable>(document_->scenario, ++generation_, table_.get());
    context.session.add(table_);
    seen_ = 0;
    choose(0);
  }
  if (table_->done() > seen_) {
    seen_ = table_->done();
    outcomes_ = table_->outcomes();
    budget_ = std::make_unique<view::Budget>(outcomes_);
    choose(std::min(row_, table_->words().size() - 1));
  }
}

/// Nobody looks: what is not known yet is found out when somebody does again.
void BudgetView::hide() {
  if (table_ != nullptr && !table_->finished()) {
    table_ = std::make_shared<app::StrategyTable>(
        document_->scenario, ++generation_, table_.get());  // keeps the rows, wants no more
    document_.reset();
  }
}

void BudgetView::choose(std::size_t row) {
  const bool other = row != row_;
  row_ = row;
  bars_.clear();
  if (budget_ != nullptr && seen_ > 0 && row < budget_->rows().size()) {
    bars_ = budget_->bars(row);
  }
  if (other || !segment_ || segment_->bar >= bars_.size() ||
      segment_->segment >= bars_[segment_->bar].segments.size()) {
    segment_.reset();
  }
}

void BudgetView::apply(ViewContext& context, std::size_t row) {
  choose(row);
  const bool known = seen_ > row && !budget_->rows()[row].refused;
  if (row == 0 || !known) {
    return;
  }
  const std::string words = table_->words()[row];
  context.session.edit(
      [&](Scenario& scenario) { scenario = app::with_usual_strategy(scenario, words); });
}

// ---- Keys ---------------------------------------------------------------------------------------

void BudgetView::walk_segments(int direction) {
  if (bars_.empty()) {
    return;
  }
  if (!segment_) {
    segment_ = SegmentRef{};
    return;
  }
  SegmentRef& at = *segment_;
  if (direction > 0 && at.segment + 1 < bars_[at.bar].segments.size()) {
    ++at.segment;
  } else if (direction > 0 && at.bar + 1 < bars_.size()) {
    at = {at.bar + 1, 0};
  } else if (direction < 0 && at.segment > 0) {
    --at.segment;
  } else if (direction < 0 && at.bar > 0) {
    at = {at.bar - 1, bars_[at.bar - 1].segments.size() - 1};
  }
}

void BudgetView::handle_keys(ViewContext& context) {
  const auto hit = [](ui::Key key) { return ui::chord(key, ui::kPlain, true); };
  if (hit(ui::Key::kUp) && row_ > 0) {
    choose(row_ - 1);
  }
  if (hit(ui::Key::kDown) && row_ + 1 < table_->words().size()) {
    choose(row_ + 1);
  }
  if (hit(ui::Key::kLeft) || ui::typed('[')) {
    walk_segments(-1);
  }
  if (hit(ui::Key::kRight) || ui::typed(']')) {
    walk_segments(1);
  }
  if (hit(ui::Key::kEnter) || hit(ui::Key::kKeypadEnter)) {
    apply(context, row_);
  }
  if (hit(ui::Key::kEscape)) {
    segment_.reset();
  }
}

// ---- Table --------------------------------------------------------------------------------------

void BudgetView::draw_figures(const BudgetRow& row) const {
  const auto percent = [](double fraction) { return fmt::format("{:.1f}", fraction * 100); };
  const std::vector<std::string> figures{gib_text(static_cast<double>(row.peak_bytes)),
                                         fmt::format("{:.2f}", row.step_s * 1e3),
                                         grouped(std::llround(row.tokens_per_s)),
                                         percent(row.exposed),
                                         percent(row.bubble),
                                         gib_text(row.sent_bytes)};
  for (const std::string& figure : figures) {
    ImGui::TableNextColumn();
    right_text(row.refused ? "-" : figure);
  }
}

void BudgetView::draw_row(ViewContext& context, std::size_t row) {
  const std::string& words = table_->words()[row];
  const std::string tag = fmt::format("budget.row.{}", words);
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool clicked = ImGui::Selectable(fmt::format("{}##{}", title_of(words), row).c_str(),
                                         row == row_,
                                         ImGuiSelectableFlags_SpanAllColumns);
  const bool known = seen_ > row;
  ui::tag(tag, known ? fmt::format("{}", budget_->rows()[row].peak_bytes) : "computing");
  if (known) {
    const BudgetRow& it = budget_->rows()[row];
    const bool surely = !it.refused && outcomes_[row].memory.surely_fits();
    ImGui::TableNextColumn();
    const S fits = !it.fits ? S::kBudgetNo : surely ? S::kBudgetYes : S::kBudgetMaybe;
    const ui::Theme& theme = ui::theme();
    ImGui::PushStyleColor(ImGuiCol_Text,
                          !it.fits ? theme.bad
                          : surely ? theme.good
                                   : theme.warning);
    ImGui::TextUnformatted(it.refused ? "-" : ui::tr(fits));
    ImGui::PopStyleColor();
    draw_figures(it);
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(note_of(it, outcomes_[row]).c_str());
  } else {
    ImGui::TableNextColumn();
    ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
    ImGui::TextUnformatted(ui::tr(S::kBudgetComputing));
    ImGui::PopStyleColor();
  }
  if (clicked) {
    apply(context, row);
  }
}

void BudgetView::draw_table(ViewContext& context, float height) {
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg |
                                     ImGuiTableFlags_ScrollY | ImGuiTableFlags_ScrollX |
                                     ImGuiTableFlags_BordersInnerV;
  if (!ImGui::BeginTable("##strategies", 9, kFlags, ImVec2(0, height))) {
    return;
  }
  ImGui::TableSetupScrollFreeze(1, 1);
  for (const S title : {S::kBudgetStrategy,
                        S::kBudgetFits,
                        S::kBudgetPeak,
                        S::kBudgetStep,
                        S::kBudgetTokens,
                        S::kBudgetExposed,
                        S::kBudgetBubble,
                        S::kBudgetSent,
                        S::kBudgetNote}) {
    ImGui::TableSetupColumn(ui::tr(title));
  }
  ImGui::TableHeadersRow();
  for (std::size_t row = 0; row < table_->words().size(); ++row) {
    draw_row(context, row);
  }
  ImGui::EndTable();
}

// ---- Bars ---------------------------------------------------------------------------------------

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

void BudgetView::draw(ViewContext& context, bool has_keys) {
  use(context);
  if (has_keys) {
    handle_keys(context);
  }
  const std::string state =
      table_->finished() ? ui::tr(S::kBudgetHint)
                         : ui::trf(S::kBudgetProgress, table_->done(), table_->words().size());
  muted_text(state);
  ui::tag("budget.state", table_->finished() ? "finished" : "computing");
  const auto rows = static_cast<float>(table_->words().size() + 1);
  const float line = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
  const float wanted = rows * line + ImGui::GetStyle().ScrollbarSize + scaled(4);
  draw_table(context, std::floor(std::min(wanted, ImGui::GetContentRegionAvail().y * 0.55F)));
  draw_bars();
}

// ---- Details ------------------------------------------------------------------------------------

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

view::DetailLines BudgetView::row_details() const {
  const BudgetRow& row = budget_->rows()[row_];
  view::DetailLines lines{{"strategy", title_of(row.words)}};
  if (row.refused) {
    lines.emplace_back("why not", ui::reason_text(row.note));
    return lines;
  }
  for (const BudgetBar& bar : bars_) {
    lines.emplace_back(bar_title(bar),
                       fmt::format("{}, {} {}; {} {}",
                                   bytes_text(bar.peak_bytes),
                                   ui::tr(S::kBudgetUpper),
                                   bytes_text(bar.upper_bound_bytes),
                                   ui::tr(S::kBudgetPeakAt),
                                   bar.peak_text));
  }
  return lines;
}

view::DetailLines BudgetView::details(const ViewContext& context) {
  use(context);
  if (seen_ <= row_) {
    return {};
  }
  return segment_ ? segment_details(*segment_) : row_details();
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

std::string BudgetView::text(const ViewContext& context) {
  use(context);
  return budget_ == nullptr ? ui::tr(S::kBudgetComputing) : view::budget_text(*budget_);
}

bool BudgetView::json(JsonWriter& json, const ViewContext& context) {
  use(context);
  if (budget_ == nullptr || !table_->finished()) {
    return false;
  }
  view::write_budget(json, *budget_);
  return true;
}

std::vector<KeyHelp> BudgetView::keys() const {
  return {{"\xE2\x86\x91 \xE2\x86\x93", S::kBudgetKeyRow},
          {"Enter", S::kBudgetKeyUse},
          {"\xE2\x86\x90 \xE2\x86\x92, [ ]", S::kBudgetKeySegment}};
}

}  // namespace lockstep::views
