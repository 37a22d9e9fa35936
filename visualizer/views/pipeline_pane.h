// PipelinePane: paints a pipeline's grid: a row of cells per stage, the activations in flight below
// it, bubble and peak beside it; zooms, moves and lets people take a cell.
//
// It knows neither sessions nor schedules: what is selected goes in and comes out through
// PipelineChoice, and what a drag means is its caller's to say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <imgui.h>

#include "core/planner/schedule/dependency.h"
#include "visualizer/models/pipeline_grid.h"
#include "visualizer/ui/draw.h"

namespace lockstep::views {

/// A cell that is held over a row at a time.
struct CellDrag {
  ActionPlace from;
  std::int32_t row = 0;
  std::int64_t time = 0;
  bool dropped = false;  ///< the button was let go in this frame
};

struct PipelineChoice {
  std::optional<ActionPlace> selected;  ///< rank: the row
  std::optional<std::int64_t> cursor;   ///< grid time
  std::optional<CellDrag> drag;         ///< out; only where cells can be moved
};

/// The letter, the micro-batch, and a small letter for the chunk where ranks have several: "F3a".
std::string cell_text(const view::PipelineGrid& grid, const view::PipelineCell& cell);
/// How a cell is painted: by direction; further chunks are shaded.
ui::Look cell_look(const view::PipelineGrid& grid, const view::PipelineCell& cell);

class PipelinePane {
 public:
  /// Shows the whole again when `identity` is another than before.
  void show(const view::PipelineGrid& grid, const void* identity);
  /// `origin` is the time that the axis calls zero. Fills the content region less `below` pixels.
  void draw(const view::PipelineGrid& grid,
            std::int64_t origin,
            float below,
            PipelineChoice& choice,
            bool movable);
  void handle_keys(PipelineChoice& choice);
  /// Where a drag would put its cell: before the index-th of the row's other cells.
  void paint_drop(const ActionPlace& from, const ActionPlace& to, bool refused) const;
  void fit();

 private:
  struct Layout {
    ui::Rect head;
    ui::Rect labels;
    ui::Rect body;
    ui::Rect gutter;  ///< right of the rows
    float row_height = 0;
  };

  Layout layout(const ImVec2& origin, const ImVec2& size) const;
  ui::Rect row_rect(std::size_t row) const;
  ui::Rect cells_rect(std::size_t row) const;
  ui::Rect live_rect(std::size_t row) const;
  float x_of(std::int64_t time) const;
  std::int64_t time_at(float x) const;
  std::optional<std::size_t> row_under(float y) const;
  std::optional<ActionPlace> cell_under(const ImVec2& point) const;
  void set_window(std::int64_t from, std::int64_t length);
  void zoom(double factor, std::int64_t around);

  void handle_mouse(PipelineChoice& choice, bool movable);
  void walk(PipelineChoice& choice, int direction) const;
  void change_row(PipelineChoice& choice, int direction) const;
  void paint_axis(std::int64_t origin) const;
  void paint_row(std::size_t row, const PipelineChoice& choice) const;
  void paint_live(std::size_t row) const;
  void paint_labels(std::size_t row) const;
  void paint_choice(const PipelineChoice& choice) const;
  void paint_tooltip(std::int64_t origin) const;

  const view::PipelineGrid* grid_ = nullptr;  ///< during a frame
  const void* identity_ = nullptr;
  Layout at_;
  std::int64_t from_ = 0;
  std::int64_t length_ = 1;
  float scroll_ = 0;
  std::optional<CellDrag> drag_;
};

/// "12.5 ms", or "3.5" units.
std::string grid_time_text(const view::PipelineGrid& grid, std::int64_t time);

}  // namespace lockstep::views
