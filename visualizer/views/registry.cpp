#include "visualizer/views/buckets_view.h"
#include "visualizer/views/budget_view.h"
#include "visualizer/views/compare_view.h"
#include "visualizer/views/memory_view.h"
#include "visualizer/views/pipeline_view.h"
#include "visualizer/views/shards_view.h"
#include "visualizer/views/steps_view.h"
#include "visualizer/views/timeline_view.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

std::vector<std::unique_ptr<View>> make_views() {
  std::vector<std::unique_ptr<View>> views;
  views.push_back(std::make_unique<TimelineView>());
  views.push_back(std::make_unique<BudgetView>());
  views.push_back(std::make_unique<BucketsView>());
  views.push_back(std::make_unique<ShardsView>());
  views.push_back(std::make_unique<PipelineView>());
  views.push_back(std::make_unique<MemoryView>());
  views.push_back(std::make_unique<StepsView>());
  views.push_back(std::make_unique<CompareView>());
  return views;
}

}  // namespace lockstep::views
