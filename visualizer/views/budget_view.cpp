#include "visualizer/views/budget_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/report_text.h"
#include "visualizer/models/budget_text.h"
#include "visualizer/models/view_json.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/reasons.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/budget_parts.h"

namespace lockstep::views {
namespace {

using ui::S;
using ui::scaled;
using view::BudgetBar;
using view::BudgetRow;

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

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

}  // namespace

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
  if (document_ != nullptr && !table_->finished()) {
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
