// ShardsView: units of sharded parameters by ranks; each cell is a strip of shards that fills when
// the unit is gathered, above a strip of its gradients, as of the time that is played. Memory
// stands below.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "visualizer/models/memory_stack.h"
#include "visualizer/models/shards.h"
#include "visualizer/ui/draw.h"
#include "visualizer/views/memory_plot.h"
#include "visualizer/views/play_bar.h"
#include "visualizer/views/rank_chooser.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class ShardsView : public View {
 public:
  const char* id() const override { return "shards"; }
  ui::S title() const override { return ui::S::kShardsView; }
  ui::S about() const override { return ui::S::kShardsAbout; }
  void draw(ViewContext& context, bool has_keys) override;
  std::string text(const ViewContext& context) override;
  bool json(JsonWriter& json, const ViewContext& context) override;
  void draw_details(ViewContext& context) override;
  std::vector<KeyHelp> keys() const override;

 private:
  /// A rank of the group that gathers.
  struct Column {
    int rank = 0;
    std::size_t shard = 0;  ///< its place in the group
    std::size_t model = 0;  ///< into models_
  };
  struct Grid {
    float names = 0;   ///< width of the column of names
    float states = 0;  ///< of the column of words
    float cell = 0;
    float row = 0;  ///< height
  };

  void use(const app::DocumentPtr& document);
  void make_models();
  void add_columns();
  const view::Shards& shards() const { return *models_.front(); }
  /// A moment at which something can be seen.
  Nanoseconds first_time() const;
  Nanoseconds peak_time() const { return memory_->samples()[memory_->peak()].time; }
  std::optional<std::size_t> selected_unit(const app::Session& session) const;
  void select(app::Session& session, std::size_t unit) const;
  void walk(app::Session& session) const;

  void draw_readouts() const;
  Grid grid(const ImVec2& size) const;
  void draw_head(const Grid& grid) const;
  void draw_grid(app::Session& session, const ImVec2& size);
  void draw_row(const Grid& grid, std::size_t unit, const ImVec2& at, bool selected) const;
  void draw_cell(const ui::Rect& cell, const Column& column, std::size_t unit) const;
  void follow(const Grid& grid, const std::optional<std::size_t>& selected);
  void draw_holders() const;
  void draw_intervals(std::size_t unit) const;

  app::DocumentPtr document_;  ///< what the models below are of
  RankChooser chooser_;
  PlayBar bar_;
  std::unique_ptr<TraceIndex> index_;
  std::vector<std::unique_ptr<view::Shards>> models_;  ///< the chosen rank's first
  std::vector<Column> columns_;
  std::size_t group_size_ = 1;
  std::unique_ptr<view::MemoryStack> memory_;
  std::int64_t outside_ = 0;
  Nanoseconds now_ = 0;        ///< what is painted
  Nanoseconds followed_ = -1;  ///< the time to which the grid was scrolled
  std::optional<std::size_t> followed_unit_;
  std::vector<std::vector<view::ShardState>> states_;  ///< by model
};

}  // namespace lockstep::views
