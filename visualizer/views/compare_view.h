// CompareView: what is shown (B) against the pinned baseline (A), or a measured run against its own
// simulation: two timelines that zoom together, and the operations that differ most.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "visualizer/app/compare_errand.h"
#include "visualizer/models/timeline_lanes.h"
#include "visualizer/views/lanes_pane.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class CompareView : public View {
 public:
  CompareView();

  const char* id() const override { return "compare"; }
  ui::S title() const override { return ui::S::kCompare; }
  ui::S about() const override { return ui::S::kCompareAbout; }
  bool is_of_one_step() const override { return false; }
  void draw(ViewContext& context, bool has_keys) override;
  std::string text(const ViewContext& context) override;
  bool json(JsonWriter& json, const ViewContext& context) override;
  view::DetailLines details(const ViewContext& context) override;
  void draw_details(ViewContext& context) override;
  std::vector<KeyHelp> keys() const override;

 private:
  struct Side {
    std::unique_ptr<view::TimelineLanes> lanes;
    LanesPane pane;
  };

  /// False while there is nothing to draw; then it has said why.
  bool use(const ViewContext& context);
  void show(std::shared_ptr<const app::Compared> compared);
  void draw_empty(ViewContext& context, ui::S why);
  void draw_head();
  void draw_side(ViewContext& context, bool is_b, float height, bool has_keys);
  void draw_differences(ViewContext& context);
  void draw_difference(ViewContext& context, std::size_t index);
  void draw_lone(const view::LoneOperation& it, bool in_b, std::size_t index);
  void draw_sums(const char* id, ui::S title, const std::vector<view::SumDifference>& sums) const;
  void synchronise(bool from_b);
  void set_sync(view::Sync sync);
  void walk(ViewContext& context, int direction);
  std::optional<std::size_t> chosen(const app::Session& session) const;
  std::optional<LanesBoxRef> box_of(const Side& side, std::int32_t rank, std::uint32_t item) const;

  std::shared_ptr<app::CompareErrand> errand_;
  std::shared_ptr<const app::Compared> compared_;
  Side a_;
  Side b_;
  view::Sync sync_ = view::Sync::kStepBegin;
  bool scroll_to_chosen_ = false;
};

}  // namespace lockstep::views
