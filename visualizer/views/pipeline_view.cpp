#include "visualizer/views/pipeline_view.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/planner/planner.h"
#include "visualizer/models/pipeline_grid_text.h"
#include "visualizer/models/view_json.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/pipeline_parts.h"

namespace lockstep::views {
namespace {

using ui::S;
using ui::scaled;
using view::PipelineCell;
using view::PipelineEdit;
using view::PipelineGrid;

const char* english(S id) {
  return ui::text_of(id, ui::Language::kEnglish);
}

}  // namespace

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

void PipelineView::draw_details(ViewContext& context) {
  use(context.document);
  if (!why_empty_.empty() || !details(context).empty()) {
    View::draw_details(context);
    return;
  }
  draw_table();
}

}  // namespace lockstep::views
