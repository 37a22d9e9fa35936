// PipelineView: the schedule under the hand.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/io/files.h"
#include "core/io/json_reader.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/pipeline_parts.h"
#include "visualizer/views/pipeline_view.h"

namespace lockstep::views {
namespace {

using ui::S;
using view::PipelineEdit;

constexpr std::size_t kMostUndo = 200;

}  // namespace

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

}  // namespace lockstep::views
