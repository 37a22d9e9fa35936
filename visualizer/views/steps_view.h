// StepsView: a collective step by step: a column of chunk cells for every rank, each with the set
// of ranks whose values are summed in it, and the moves of the step as arrows. What moves was
// recorded: by a file, or by a child process that the session runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "visualizer/models/collective_steps.h"
#include "visualizer/ui/draw.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class StepsView : public View {
 public:
  const char* id() const override { return "steps"; }
  ui::S title() const override { return ui::S::kSteps; }
  ui::S about() const override { return ui::S::kStepsAbout; }
  bool needs_plan() const override { return false; }
  bool is_of_one_step() const override { return false; }
  void draw(ViewContext& context, bool has_keys) override;
  std::string text(const ViewContext& context) override;
  bool json(JsonWriter& json, const ViewContext& context) override;
  view::DetailLines details(const ViewContext& context) override;
  void draw_details(ViewContext& context) override;
  std::vector<KeyHelp> keys() const override;

 private:
  struct Cell {
    int rank = 0;
    int chunk = 0;
  };

  void use(app::Session& session);
  void ask(app::Session& session, const app::CollectiveRequest& request);
  int count() const { return static_cast<int>(steps_->steps().size()); }
  /// Of the step that was made last; null before the first.
  const view::CollectiveStep* step() const;
  void go_to(int steps_done);
  void go_to_phase(int direction);
  void advance_time();
  void handle_request_keys(app::Session& session);
  void handle_step_keys();

  void draw_request(app::Session& session);
  void draw_controls();
  void draw_headline() const;
  void draw_legend() const;
  void draw_picture();
  /// False when columns would lie over one another.
  bool place_circle(const ui::Rect& area);
  void place_row(const ui::Rect& area);
  std::optional<Cell> cell_under(const ImVec2& point) const;
  void paint_arrow(const view::StepMove& move) const;
  ui::Rect cell_rect(int rank, int chunk) const;
  void paint_column(int rank) const;
  void paint_cell(const Cell& cell) const;
  const view::StepMove* move_into(const Cell& cell) const;
  void paint_arrows() const;
  void draw_totals() const;

  app::RecordPtr record_;
  std::optional<view::CollectiveSteps> steps_;
  std::string error_;
  view::Holdings now_;
  app::CollectiveRequest wanted_;
  bool asked_ = false;
  bool playing_ = false;
  float waited_ = 0;  ///< seconds since the last step while playing
  bool circle_ = true;
  std::optional<Cell> selected_;
  std::vector<std::int64_t> sent_;  ///< by rank, so far
  // The layout of this frame.
  std::vector<ui::Rect> columns_;  ///< by rank: its cells
  float cell_height_ = 0;
  int drawn_chunks_ = 0;
  bool in_row_ = false;
};

}  // namespace lockstep::views
