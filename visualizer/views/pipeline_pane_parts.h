// PipelinePaneParts: what the files of PipelinePane share: the stages of a row, in words.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "visualizer/ui/state.h"
#include "visualizer/views/pipeline_pane.h"

namespace lockstep::views {

inline std::string stages_text(const view::PipelineRow& row) {
  std::vector<int> stages;
  for (const view::PipelineCell& cell : row.cells) {
    if (std::find(stages.begin(), stages.end(), cell.stage) == stages.end()) {
      stages.push_back(cell.stage);
    }
  }
  std::sort(stages.begin(), stages.end());
  return fmt::format("{} {}", ui::tr(ui::S::kPipeStage), fmt::join(stages, ","));
}

}  // namespace lockstep::views
