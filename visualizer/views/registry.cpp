#include "visualizer/views/pipeline_view.h"
#include "visualizer/views/steps_view.h"
#include "visualizer/views/timeline_view.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

std::vector<std::unique_ptr<View>> make_views() {
  std::vector<std::unique_ptr<View>> views;
  views.push_back(std::make_unique<TimelineView>());
  views.push_back(std::make_unique<PipelineView>());
  views.push_back(std::make_unique<StepsView>());
  return views;
}

}  // namespace lockstep::views
