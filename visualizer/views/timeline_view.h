// TimelineView: ranks and their streams over one step; where the time goes below it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "visualizer/models/area_split.h"
#include "visualizer/models/imported_lanes.h"
#include "visualizer/models/imported_text.h"
#include "visualizer/models/timeline_lanes.h"
#include "visualizer/views/lanes_pane.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class TimelineView : public View {
 public:
  const char* id() const override { return "timeline"; }
  ui::S title() const override { return ui::S::kTimeline; }
  ui::S about() const override { return ui::S::kTimelineAbout; }
  bool needs_plan() const override { return false; }
  void draw(ViewContext& context, bool has_keys) override;
  std::string text(const ViewContext& context) override;
  bool json(JsonWriter& json, const ViewContext& context) override;
  bool has_svg() const override { return true; }
  std::string svg(const ViewContext& context) override;
  view::DetailLines details(const ViewContext& context) override;
  void draw_details(ViewContext& context) override;
  std::vector<KeyHelp> keys() const override;

 private:
  void use(const app::DocumentPtr& document);
  std::optional<LanesBoxRef> box_of(const app::Selection& selection) const;
  void show_plan(const app::Document& document);
  void show_imported(const ImportedTrace& trace);
  void draw_split(const view::TimeWindow& area) const;
  void draw_busy(const view::TimeWindow& area);

  app::DocumentPtr document_;  ///< what the models below are of
  std::unique_ptr<view::Lanes> lanes_;
  std::unique_ptr<view::AreaSplitter> splitter_;   ///< of a plan's
  const view::ImportedLanes* imported_ = nullptr;  ///< lanes_, if they are of another tool
  std::vector<view::ImportedBusy> busy_;
  std::optional<view::TimeWindow> busy_area_;  ///< what busy_ is of
  LanesPane pane_;
};

}  // namespace lockstep::views
