#include "visualizer/views/pipeline_view.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <imgui_stdlib.h>

#include "core/error.h"
#include "core/io/files.h"
#include "core/io/json_reader.h"
#include "core/planner/planner.h"
#include "core/report_text.h"
#include "visualizer/models/pipeline_grid_text.h"
#include "visualizer/models/timeline_text.h"
#include "visualizer/models/view_json.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

using ui::S;
using ui::scaled;
using view::PipelineCell;
using view::PipelineEdit;
using view::PipelineGrid;

constexpr std::size_t kMostUndo = 200;
constexpr int kMostCost = 8;

struct CostField {
  S title;
  const char* name;
  std::int32_t UnitCosts::*value;
  int least;
};
constexpr std::array<CostField, 4> kCosts{
    {{S::kPipeForwardCost, "tF", &UnitCosts::forward, 1},
     {S::kPipeInputCost, "tB", &UnitCosts::backward_input, 1},
     {S::kPipeWeightCost, "tW", &UnitCosts::backward_weight, 0},
     {S::kPipeMessageCost, "tcomm", &UnitCosts::message, 0}}};

S pass_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return S::kForward;
    case ActionKind::kBackwardInput:
      return S::kPipeInput;
    case ActionKind::kBackwardWeight:
      return S::kPipeWeight;
    default:
      return S::kBackward;
  }
}

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

const char* english(S id) {
  return ui::text_of(id, ui::Language::kEnglish);
}

}  // namespace

// ---- Models -------------------------------------------------------------------------------------

void PipelineView::use(const app::DocumentPtr& document) {
  if (document == document_) {
    return;
  }
  document_ = document;
  why_empty_.clear();
  selected_.reset();
  refused_.reset();
  const Scenario& scenario = document->scenario;
  if (scenario.strategy.pipeline.degree < 2) {
    why_empty_ = english(S::kPipeEmpty);
    return;
  }
  try {
    real_ = view::pipeline_grid(scenario, document->plan, document->shown_step());
    const UnitCosts costs = edit_ ? edit_->costs() : UnitCosts{};
    given_.emplace(compute_only(pipeline_schedule(scenario)), costs);
  } catch (const Error& error) {  // a file's trace or schedule that is none of a pipeline
    why_empty_ = error.what();
    return;
  }
  formula_ = view::bubble_formula(scenario);
  if (!edit_ || edit_->schedule() != given_->schedule()) {
    edit_ = given_;
    undo_.clear();
  }
  set_mode(mode_);
}

const PipelineGrid& PipelineView::grid() const {
  switch (mode_) {
    case Mode::kReal:
      return real_;
    case Mode::kUnit:
      return given_->grid();
    default:
      return edit_->grid();
  }
}

std::int64_t PipelineView::origin() const {
  return shows_real() ? document_->shown_step().begin : 0;
}

std::optional<view::BubbleFormula> PipelineView::formula() const {
  const bool edited = mode_ == Mode::kEdit && edit_->schedule() != given_->schedule();
  return edited ? std::nullopt : formula_;
}

std::optional<ActionPlace> PipelineView::place_of(const app::Selection& selection) const {
  for (std::size_t row = 0; row < real_.rows.size(); ++row) {
    if (real_.rows[row].rank != selection.rank) {
      continue;
    }
    const std::vector<PipelineCell>& cells = real_.rows[row].cells;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].first <= selection.operation && selection.operation <= cells[i].last) {
        return ActionPlace{static_cast<std::int32_t>(row), static_cast<std::int32_t>(i)};
      }
    }
  }
  return std::nullopt;
}

// ---- Editing ------------------------------------------------------------------------------------

void PipelineView::say(std::string message, bool bad) {
  message_ = std::move(message);
  message_is_bad_ = bad;
}

void PipelineView::set_mode(Mode mode) {
  mode_ = mode;
  selected_.reset();
  cursor_.reset();
}

void PipelineView::set_costs(const UnitCosts& costs) {
  given_->set_costs(costs);
  edit_->set_costs(costs);
  pane_.show(grid(), nullptr);
}

void PipelineView::change(PipelineEdit edit) {
  edit.set_costs(edit_->costs());
  undo_.push_back(std::exchange(*edit_, std::move(edit)));
  if (undo_.size() > kMostUndo) {
    undo_.erase(undo_.begin());
  }
  refused_.reset();
  say("");
}

void PipelineView::move(const Move& move) {
  if (move.from == move.to) {
    return;
  }
  PipelineEdit edit = *edit_;
  if (const auto refusal = edit.move(move.from, move.to)) {
    say(ui::trf(S::kPipeRefused, *refusal), true);
    refused_ = move;
    return;
  }
  change(std::move(edit));
  selected_ = move.to;
}

void PipelineView::auto_fix() {
  if (!refused_) {
    return;
  }
  const auto row = static_cast<std::size_t>(refused_->from.rank);
  const Action action =
      edit_->schedule().ranks[row][static_cast<std::size_t>(refused_->from.index)];
  PipelineEdit edit = *edit_;
  if (const auto refusal = edit.move_and_repair(refused_->from, refused_->to)) {
    say(ui::trf(S::kPipeRefused, *refusal), true);
    refused_.reset();
    return;
  }
  change(std::move(edit));
  const std::vector<Action>& actions = edit_->schedule().ranks[row];
  const auto found = std::find(actions.begin(), actions.end(), action);
  selected_ = ActionPlace{static_cast<std::int32_t>(row),
                          static_cast<std::int32_t>(found - actions.begin())};
}

void PipelineView::undo() {
  if (undo_.empty()) {
    return;
  }
  const UnitCosts costs = edit_->costs();
  edit_ = std::move(undo_.back());
  undo_.pop_back();
  edit_->set_costs(costs);
  selected_.reset();
  refused_.reset();
  say("");
}

void PipelineView::apply(ViewContext& context) {
  context.session.edit([&](Scenario& s) { s = view::with_schedule(s, edit_->schedule()); });
  const Problems& problems = context.session.problems();
  say(problems.empty() ? ui::tr(S::kPipeApplied) : problems.one_line(), !problems.empty());
}

void PipelineView::import_csv() {
  try {
    change(PipelineEdit::from_csv(read_text_file(path_, "schedule"), path_, edit_->costs()));
    selected_.reset();
    say(ui::trf(S::kPipeImported, path_));
    pane_.show(grid(), nullptr);
  } catch (const Error& error) {
    say(error.what(), true);
  }
}

void PipelineView::export_csv() {
  try {
    const std::string csv = edit_->csv();
    write_whole(path_, {csv}, "schedule");
    say(ui::trf(S::kPipeExported, path_));
  } catch (const Error& error) {
    say(error.what(), true);
  }
}

void PipelineView::handle_drag(const CellDrag& drag) {
  const ActionPlace to{drag.row,
                       drag.row == drag.from.rank ? edit_->index_at(drag.from, drag.time) : 0};
  if (drag.dropped) {
    move({drag.from, to});
    return;
  }
  const std::optional<std::string> refusal = edit_->refusal(drag.from, to);
  pane_.paint_drop(drag.from, to, refusal.has_value());
  say(refusal ? ui::trf(S::kPipeRefused, *refusal) : "", refusal.has_value());
}

// ---- Keys ---------------------------------------------------------------------------------------

void PipelineView::handle_edit_keys(ViewContext& context) {
  using ui::Key;
  const auto shifted = [&](Key key, int rank, int index) {
    if (!selected_ || !ui::chord(key, ui::kShift, true)) {
      return;
    }
    const ActionPlace to{selected_->rank + rank, selected_->index + index};
    const auto& rows = edit_->schedule().ranks;
    if (to.rank < 0 || to.rank >= static_cast<std::int32_t>(rows.size()) || to.index < 0 ||
        to.index > static_cast<std::int32_t>(rows[static_cast<std::size_t>(to.rank)].size()) - 1) {
      return;
    }
    move({*selected_, to});
  };
  shifted(Key::kLeft, 0, -1);
  shifted(Key::kRight, 0, 1);
  shifted(Key::kUp, -1, 0);
  shifted(Key::kDown, 1, 0);
  if (ui::chord(Key::kBackspace, ui::kPlain)) {
    undo();
  }
  if (ui::chord(Key::kX, ui::kPlain)) {
    auto_fix();
  }
  if (ui::chord(Key::kEnter, ui::kPlain)) {
    apply(context);
  }
  if (ui::typed('i')) {
    ui::state().tags.want_focus("pipeline.path");
  }
}

void PipelineView::handle_keys(ViewContext& context) {
  using ui::Key;
  if (ui::chord(Key::kM, ui::kPlain)) {
    set_mode(mode_ == Mode::kReal ? Mode::kUnit : mode_ == Mode::kUnit ? Mode::kEdit : Mode::kReal);
  }
  if (shows_real()) {
    return;
  }
  if (ui::pressed(Key::kEscape, false)) {
    selected_.reset();
  }
  if (ui::typed('k')) {
    cost_ = (cost_ + 1) % kCosts.size();
  }
  const CostField& field = kCosts[cost_];
  UnitCosts costs = edit_->costs();
  std::int32_t& value = costs.*field.value;
  if (ui::pressed(Key::kPageUp) && value < kMostCost) {
    ++value;
    set_costs(costs);
  } else if (ui::pressed(Key::kPageDown) && value > field.least) {
    --value;
    set_costs(costs);
  }
  if (mode_ == Mode::kEdit) {
    handle_edit_keys(context);
  }
}

std::vector<KeyHelp> PipelineView::keys() const {
  return {{"W S", S::kKeyZoom},
          {"M", S::kPipeKeyMode},
          {"", S::kPipeKeySelect},
          {"", S::kPipeKeyMove},
          {"", S::kPipeKeyEdit},
          {"", S::kPipeKeyCost},
          {"", S::kPipeKeyFile},
          {"F", S::kFit}};
}

// ---- Widgets ------------------------------------------------------------------------------------

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

void PipelineView::draw_grid(ViewContext& context, bool has_keys) {
  PipelineChoice choice;
  app::Session& session = context.session;
  if (shows_real()) {
    choice.cursor = session.cursor;
    if (session.selection) {
      choice.selected = place_of(*session.selection);
    }
  } else {
    choice.selected = selected_;
    choice.cursor = cursor_;
  }
  const std::optional<ActionPlace> before = choice.selected;
  const void* identity =
      shows_real() ? static_cast<const void*>(document_.get()) : static_cast<const void*>(&given_);
  pane_.show(grid(), identity);
  if (has_keys) {
    pane_.handle_keys(choice);
  }
  const float below = 2 * ImGui::GetTextLineHeightWithSpacing() + scaled(6);
  pane_.draw(grid(), origin(), below, choice, mode_ == Mode::kEdit);
  if (!shows_real()) {
    selected_ = choice.selected;
    cursor_ = choice.cursor;
    if (choice.drag) {
      handle_drag(*choice.drag);
    }
    return;
  }
  session.cursor = choice.cursor;
  if (choice.selected != before) {
    session.selection.reset();
    if (choice.selected) {
      const view::PipelineRow& row = real_.rows[static_cast<std::size_t>(choice.selected->rank)];
      session.selection = app::Selection{
          row.rank, row.cells[static_cast<std::size_t>(choice.selected->index)].first};
    }
  }
}

void PipelineView::draw(ViewContext& context, bool has_keys) {
  use(context.document);
  if (!why_empty_.empty()) {
    draw_empty(context);
    return;
  }
  if (has_keys) {
    handle_keys(context);
  }
  mode_buttons();
  if (!shows_real()) {
    cost_sliders();
  }
  if (mode_ == Mode::kEdit) {
    edit_buttons(context);
    message_line();
  }
  legend();
  draw_grid(context, has_keys);
  bubble_line();
}

std::string PipelineView::text(const ViewContext& context) {
  use(context.document);
  if (!why_empty_.empty()) {
    return why_empty_ + "\n";
  }
  return shows_real() ? view::pipeline_text(
                            document_->scenario, document_->plan, document_->shown_step(), {})
                      : view::pipeline_grid_text(grid(), formula(), {});
}

bool PipelineView::json(JsonWriter& json, const ViewContext& context) {
  use(context.document);
  if (!why_empty_.empty()) {
    return false;
  }
  view::write_pipeline(
      json,
      real_,
      view::pipeline_grid(compute_only(pipeline_schedule(document_->scenario)), UnitCosts{}),
      view::bubble_formula(document_->scenario));
  return true;
}

/// Of the schedule under the hand while one edits.
std::string PipelineView::actions_csv(const ViewContext& context) {
  use(context.document);
  const std::optional<PipelineEdit>& shown = mode_ == Mode::kEdit ? edit_ : given_;
  return shown ? shown->csv() : "";
}

// ---- Details ------------------------------------------------------------------------------------

view::DetailLines PipelineView::details(const ViewContext& context) {
  use(context.document);
  if (!why_empty_.empty()) {
    return {};
  }
  std::optional<ActionPlace> place = selected_;
  if (shows_real()) {
    place = context.session.selection ? place_of(*context.session.selection) : std::nullopt;
  }
  if (!place) {
    return {};
  }
  const PipelineGrid& shown = grid();
  const view::PipelineRow& row = shown.rows[static_cast<std::size_t>(place->rank)];
  const PipelineCell& cell = row.cells[static_cast<std::size_t>(place->index)];
  view::DetailLines lines{
      {english(S::kPipeCell), cell_text(shown, cell)},
      {english(S::kPipePass), ui::tr(pass_of(cell.kind))},
      {english(S::kPipeStage), fmt::format("{} (rank {})", cell.stage, row.rank)},
      {english(S::kPipeMicrobatch), std::to_string(cell.microbatch)},
      {english(S::kPipeBegin), grid_time_text(shown, cell.begin - origin())},
      {english(S::kPipeEnd), grid_time_text(shown, cell.end - origin())}};
  if (shows_real()) {
    lines.emplace_back(english(S::kPipeComputed), grid_time_text(shown, cell.busy));
    lines.emplace_back(english(S::kPipeStalled),
                       grid_time_text(shown, cell.end - cell.begin - cell.busy));
    return lines;
  }
  const PipelineEdit& edit = mode_ == Mode::kEdit ? *edit_ : *given_;
  const DependencyTracker tracker(edit.schedule());
  const std::optional<Action> need = tracker.need_of({cell.kind, cell.stage, cell.microbatch});
  lines.emplace_back(english(S::kPipeNeeds), need ? action_text(*need) : "-");
  return lines;
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

void PipelineView::draw_details(ViewContext& context) {
  use(context.document);
  if (!why_empty_.empty() || !details(context).empty()) {
    View::draw_details(context);
    return;
  }
  draw_table();
}

}  // namespace lockstep::views
