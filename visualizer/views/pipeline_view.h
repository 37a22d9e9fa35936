// PipelineView: the pipeline of the scenario as a grid of cells: as it ran, in unit time, and as a
// schedule under the hand, which can be applied to the scenario.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "visualizer/models/pipeline_edit.h"
#include "visualizer/models/pipeline_grid.h"
#include "visualizer/views/pipeline_pane.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class PipelineView : public View {
 public:
  const char* id() const override { return "pipeline"; }
  ui::S title() const override { return ui::S::kPipe; }
  ui::S about() const override { return ui::S::kPipeAbout; }
  void draw(ViewContext& context, bool has_keys) override;
  std::string text(const ViewContext& context) override;
  bool json(JsonWriter& json, const ViewContext& context) override;
  std::string actions_csv(const ViewContext& context) override;
  view::DetailLines details(const ViewContext& context) override;
  void draw_details(ViewContext& context) override;
  std::vector<KeyHelp> keys() const override;

 private:
  enum class Mode : std::uint8_t { kReal, kUnit, kEdit };
  struct Move {
    ActionPlace from;
    ActionPlace to;
  };

  void use(const app::DocumentPtr& document);
  bool shows_real() const { return mode_ == Mode::kReal; }
  const view::PipelineGrid& grid() const;
  std::int64_t origin() const;
  std::optional<view::BubbleFormula> formula() const;
  std::optional<ActionPlace> place_of(const app::Selection& selection) const;
  void say(std::string message, bool bad = false);

  void draw_empty(ViewContext& context) const;
  void mode_buttons();
  void cost_sliders();
  void edit_buttons(ViewContext& context);
  void file_field();
  void legend() const;
  void message_line() const;
  void bubble_line() const;
  void draw_grid(ViewContext& context, bool has_keys);
  void draw_table() const;

  void handle_keys(ViewContext& context);
  void handle_edit_keys(ViewContext& context);
  void handle_drag(const CellDrag& drag);
  void set_mode(Mode mode);
  void set_costs(const UnitCosts& costs);
  void change(view::PipelineEdit edit);
  void move(const Move& move);
  void auto_fix();
  void undo();
  void apply(ViewContext& context);
  void import_csv();
  void export_csv();

  app::DocumentPtr document_;  ///< what the models below are of
  std::string why_empty_;
  view::PipelineGrid real_;
  std::optional<view::BubbleFormula> formula_;
  std::optional<view::PipelineEdit> given_;  ///< the scenario's schedule
  std::optional<view::PipelineEdit> edit_;   ///< the one under the hand
  std::vector<view::PipelineEdit> undo_;

  Mode mode_ = Mode::kReal;
  PipelinePane pane_;
  std::optional<ActionPlace> selected_;  ///< in unit time
  std::optional<std::int64_t> cursor_;   ///< in unit time
  std::optional<Move> refused_;
  std::string message_;
  bool message_is_bad_ = false;
  std::string path_;
  std::size_t cost_ = 0;  ///< that PageUp and PageDown change
};

}  // namespace lockstep::views
