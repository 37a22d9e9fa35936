// BudgetView: strategies as a table, and the memory of the chosen one as a stacked bar for every
// class of ranks, with the line of the device.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "visualizer/app/strategy_table.h"
#include "visualizer/models/budget.h"
#include "visualizer/ui/draw.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class BudgetView : public View {
 public:
  const char* id() const override { return "budget"; }
  ui::S title() const override { return ui::S::kBudget; }
  ui::S about() const override { return ui::S::kBudgetAbout; }
  void draw(ViewContext& context, bool has_keys) override;
  std::string text(const ViewContext& context) override;
  bool json(JsonWriter& json, const ViewContext& context) override;
  view::DetailLines details(const ViewContext& context) override;
  std::vector<KeyHelp> keys() const override;
  void hide() override;
  std::shared_ptr<const app::StrategyTable> table() const { return table_; }

 private:
  struct SegmentRef {
    std::size_t bar = 0;
    std::size_t segment = 0;
  };
  struct BarsLayout {
    ui::Rect area;    ///< right of the labels
    float label = 0;  ///< width
    float head = 0;   ///< height, for the device's name
    float bar = 0;    ///< height
    double pixels_per_byte = 0;
  };

  void use(const ViewContext& context);
  void choose(std::size_t row);
  void apply(ViewContext& context, std::size_t row);
  void handle_keys(ViewContext& context);
  void walk_segments(int direction);

  void draw_table(ViewContext& context, float height);
  void draw_row(ViewContext& context, std::size_t row);
  void draw_figures(const view::BudgetRow& row) const;
  void draw_bars();
  void draw_bar(const ui::Rect& place, std::size_t bar, double pixels_per_byte);
  void draw_device_line(const BarsLayout& at) const;
  BarsLayout bars_layout() const;
  void draw_legend() const;
  view::DetailLines row_details() const;
  view::DetailLines segment_details(const SegmentRef& at) const;
  void tooltip(const SegmentRef& at) const;

  app::DocumentPtr document_;
  std::uint64_t generation_ = 0;
  std::shared_ptr<app::StrategyTable> table_;
  std::size_t seen_ = 0;  ///< rows of the table that the budget has
  std::vector<StrategyOutcome> outcomes_;
  std::unique_ptr<view::Budget> budget_;
  std::size_t row_ = 0;  ///< chosen
  std::vector<view::BudgetBar> bars_;
  std::optional<SegmentRef> segment_;
};

}  // namespace lockstep::views
