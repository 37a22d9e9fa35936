// PipelineView: buttons, sliders and lines around the grid, and the table below it.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "core/report_text.h"
#include "visualizer/models/timeline_text.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/pipeline_parts.h"
#include "visualizer/views/pipeline_view.h"

namespace lockstep::views {
namespace {

using ui::S;
using ui::scaled;
using view::PipelineCell;
using view::PipelineGrid;

/// On the same line while there is room for so many pixels.
void flow(float width) {
  const float right = ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x;
  if (ImGui::GetItemRectMax().x + ImGui::GetStyle().ItemSpacing.x + width <= right) {
    ImGui::SameLine();
  }
}

float button_width(const char* text) {
  return ImGui::CalcTextSize(text).x + 2 * ImGui::GetStyle().FramePadding.x;
}

bool button(S title, const char* tag, bool enabled = true) {
  const char* text = ui::tr(title);
  flow(button_width(text));
  ImGui::BeginDisabled(!enabled);
  ImGui::PushStyleColor(ImGuiCol_Text, enabled ? ui::theme().text : ui::theme().disabled);
  const bool hit = ImGui::Button(text);
  ImGui::PopStyleColor();
  ImGui::EndDisabled();
  ui::tag(tag, "", enabled);
  return hit && enabled;
}

std::string percent(double fraction) {
  return fmt::format("{:.1f}", 100 * fraction);
}

}  // namespace

void PipelineView::draw_empty(ViewContext& context) const {
  const bool one_stage = context.document->scenario.strategy.pipeline.degree < 2;
  const char* text = one_stage ? ui::tr(S::kPipeEmpty) : why_empty_.c_str();
  ImGui::TextWrapped("%s", text);
  ui::tag("view.empty", text);
  if (!one_stage) {
    return;
  }
  if (ImGui::Button(ui::tr(S::kPipeGoTo))) {
    ui::state().tags.want_focus("strategy.pipeline.degree");
  }
  ui::tag("pipeline.goto");
}

void PipelineView::mode_buttons() {
  constexpr std::array<std::pair<Mode, S>, 3> kModes{
      {{Mode::kReal, S::kPipeReal}, {Mode::kUnit, S::kPipeUnit}, {Mode::kEdit, S::kPipeEdit}}};
  constexpr std::array<const char*, 3> kTags{"pipeline.real", "pipeline.unit", "pipeline.edit"};
  for (std::size_t i = 0; i < kModes.size(); ++i) {
    const Mode mode = kModes[i].first;
    if (i > 0) {
      flow(button_width(ui::tr(kModes[i].second)) + ImGui::GetFrameHeight());
    }
    if (ImGui::RadioButton(ui::tr(kModes[i].second), mode_ == mode)) {
      set_mode(mode);
    }
    ui::tag(kTags[i], mode_ == mode ? "current" : "");
  }
}

void PipelineView::cost_sliders() {
  for (std::size_t i = 0; i < kCosts.size(); ++i) {
    const CostField& field = kCosts[i];
    UnitCosts costs = edit_->costs();
    const float width = scaled(76);
    flow(width);
    ImGui::SetNextItemWidth(width);
    // The slider that the keys change has an arrow.
    const std::string format = fmt::format("{}{} %d", i == cost_ ? "> " : "", field.name);
    const bool changed = ImGui::SliderInt(fmt::format("##{}", field.name).c_str(),
                                          &(costs.*field.value),
                                          field.least,
                                          kMostCost,
                                          format.c_str(),
                                          ImGuiSliderFlags_AlwaysClamp);
    ui::tag(fmt::format("pipeline.cost.{}", field.name), std::to_string(costs.*field.value));
    if (ImGui::IsItemHovered()) {
      ImGui::SetTooltip("%s", ui::tr(field.title));
    }
    if (changed) {
      cost_ = i;
      set_costs(costs);
    }
  }
}

void PipelineView::file_field() {
  const float width = scaled(190);
  flow(width);
  ImGui::SetNextItemWidth(std::min(width, ImGui::GetContentRegionAvail().x));
  ui::focus_if_wanted("pipeline.path");
  const bool enter = ImGui::InputTextWithHint(
      "##path", ui::tr(S::kPipePath), &path_, ImGuiInputTextFlags_EnterReturnsTrue);
  ui::tag("pipeline.path", path_);
  if ((button(S::kPipeImport, "pipeline.import", !path_.empty()) || enter) && !path_.empty()) {
    import_csv();
  }
  if (button(S::kPipeExport, "pipeline.export", !path_.empty())) {
    export_csv();
  }
}

void PipelineView::edit_buttons(ViewContext& context) {
  const bool edited = edit_->schedule() != given_->schedule();
  ImGui::Dummy(ImVec2(0, 0));
  if (button(S::kPipeUndo, "pipeline.undo", !undo_.empty())) {
    undo();
  }
  if (button(S::kPipeFix, "pipeline.fix", refused_.has_value())) {
    auto_fix();
  }
  if (button(S::kPipeApply, "pipeline.apply", edited)) {
    apply(context);
  }
  file_field();
}

void PipelineView::message_line() const {
  std::string text = message_;
  if (text.empty()) {
    const bool edited = edit_->schedule() != given_->schedule();
    text = edited ? ui::trf(S::kPipeNotApplied,
                            fmt::format("{:g}", edit_->makespan()),
                            fmt::format("{:g}", given_->makespan()))
                  : ui::tr(S::kPipeHint);
  }
  ImGui::PushStyleColor(ImGuiCol_Text, message_is_bad_ ? ui::theme().bad : ui::theme().muted);
  ImGui::TextWrapped("%s", text.c_str());
  ImGui::PopStyleColor();
  ui::tag("pipeline.message", text);
}

void PipelineView::legend() const {
  std::vector<PipelineCell> shown;  // one of each kind and chunk
  for (const view::PipelineRow& row : grid().rows) {
    for (const PipelineCell& cell : row.cells) {
      const bool known = std::any_of(
          shown.begin(), shown.end(), [&](const PipelineCell& it) { return it.kind == cell.kind; });
      if (!known) {
        shown.push_back(cell);
      }
    }
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImFont* font = ui::state().fonts.small;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float right = origin.x + ImGui::GetContentRegionAvail().x;
  const float line = std::floor(font->FontSize * 1.2F) + scaled(3);
  ImVec2 at = origin;
  const auto place = [&](float width) {
    if (at.x > origin.x && at.x + width > right) {
      at = ImVec2(origin.x, at.y + line);
    }
  };
  for (PipelineCell cell : shown) {
    cell.chunk = 0;
    const char* name = ui::tr(pass_of(cell.kind));
    place(ui::text_width(*font, name) + scaled(40));
    at.x += ui::legend_entry(list, at, cell_look(grid(), cell), view::letter_of(cell.kind), name) +
            scaled(12);
  }
  for (int chunk = 0; grid().chunks > 1 && chunk < std::min(grid().chunks, 4); ++chunk) {
    PipelineCell cell;
    cell.chunk = chunk;
    const char letter = static_cast<char>('a' + chunk);
    const std::string name = ui::trf(S::kPipeChunk, chunk, letter);
    place(ui::text_width(*font, name) + scaled(40));
    at.x += ui::legend_entry(list, at, cell_look(grid(), cell), letter, name) + scaled(12);
  }
  const std::string live = ui::tr(S::kPipeInFlight);
  place(ui::text_width(*font, live) + scaled(40));
  const ui::Look look{ui::theme().raised, ui::theme().text, ui::Hatch::kNone, false};
  ui::legend_entry(list, at, look, '2', live);
  ImGui::Dummy(ImVec2(1, at.y - origin.y + line));
}

void PipelineView::bubble_line() const {
  const PipelineGrid& shown = grid();
  std::string length = grid_time_text(shown, shown.length());
  if (shown.ticks_per_unit > 0) {
    length = ui::trf(S::kPipeUnits, length);
  }
  const std::string formula_text = formula() ? ui::trf(S::kPipeFormula, formula()->text()) + "."
                                             : std::string(ui::tr(S::kPipeNoFormula));
  const std::string text = fmt::format("{} {} {}",
                                       ui::trf(S::kPipeMeasured, percent(shown.bubble())),
                                       formula_text,
                                       ui::trf(S::kPipeLength, length));
  ImGui::TextWrapped("%s", text.c_str());
  ui::tag("pipeline.bubble", percent(shown.bubble()));
}

void PipelineView::draw_table() const {
  const PipelineGrid& shown = grid();
  const bool real = shows_real();
  const int columns = real ? 6 : 4;
  const ImGuiTableFlags flags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("##stages", columns, flags)) {
    return;
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const S title : {S::kSplitRank, S::kPipeBusy, S::kPipeBubbleColumn, S::kPipePeakColumn}) {
    ImGui::TableSetupColumn(ui::tr(title));
  }
  if (real) {
    ImGui::TableSetupColumn(ui::tr(S::kPipeStalled));
    ImGui::TableSetupColumn(ui::tr(S::kPipeBytesColumn));
  }
  ImGui::TableHeadersRow();
  const auto cell = [](const std::string& text) {
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(text.c_str());
  };
  for (const view::PipelineRow& row : shown.rows) {
    ImGui::TableNextRow();
    cell(std::to_string(row.rank));
    cell(grid_time_text(shown, row.working));
    cell(percent(shown.bubble(row)));
    cell(std::to_string(row.peak_live));
    if (real) {
      cell(grid_time_text(shown, row.stalled));
      cell(bytes_text(row.peak_activation_bytes));
      ui::tag(fmt::format("pipeline.bytes.{}", row.coordinate),
              std::to_string(row.peak_activation_bytes));
    }
  }
  ImGui::EndTable();
}

}  // namespace lockstep::views
