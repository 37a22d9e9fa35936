// TimelineView: ranks and their streams over one step; below it where the time goes, or why the
// selected operation started when it did.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "visualizer/models/imported_lanes.h"
#include "visualizer/models/timeline_lanes.h"
#include "visualizer/views/find_bar.h"
#include "visualizer/views/lanes_pane.h"
#include "visualizer/views/timeline_areas.h"
#include "visualizer/views/timeline_causes.h"
#include "visualizer/views/timeline_path.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class TimelineView : public View {
 public:
  TimelineView();

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
  bool escape() override { return find_.close(); }
  std::vector<KeyHelp> keys() const override;

 private:
  void use(const app::DocumentPtr& document);
  std::optional<LanesBoxRef> box_of(const app::Selection& selection) const;
  std::optional<LanesBoxRef> box_of(std::size_t row, std::uint32_t item) const;
  void show_plan(const app::Document& document);
  void show_imported(const ImportedTrace& trace);
  /// Buttons, search, and the path in a line.
  void draw_bar(ViewContext& context, LanesChoice& choice, bool has_keys);
  void draw_toggle(bool has_keys);
  void draw_steps(ViewContext& context, bool has_keys);
  void find_causes(const std::optional<LanesBoxRef>& selected);
  void follow(LanesChoice& choice, bool has_keys);
  void go_to(LanesChoice& choice, const TrackOperation& target);
  void count_rows();
  void draw_selection(ViewContext& context);

  app::DocumentPtr document_;  ///< what the models below are of
  std::unique_ptr<view::Lanes> lanes_;
  view::TimelineLanes* plan_lanes_ = nullptr;      ///< lanes_, if they are of a plan
  const view::ImportedLanes* imported_ = nullptr;  ///< lanes_, if they are of another tool
  TimelineAreas areas_;
  TimelineCauses causes_;
  TimelinePath path_;
  FindBar find_;
  LanesPane pane_;
};

}  // namespace lockstep::views
