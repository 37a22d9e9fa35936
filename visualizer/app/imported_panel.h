// ImportedPanel: what stands beside the timeline of another tool's trace: in the place of settings
// what the file says about itself, in the place of results what can be told without a plan.
#pragma once

#include <vector>

#include "visualizer/app/document.h"
#include "visualizer/models/imported_text.h"

namespace lockstep::app {

class ImportedPanel {
 public:
  /// Into the current window. `document` holds an imported trace.
  void draw_facts(const DocumentPtr& document);
  void draw_figures(const DocumentPtr& document);

 private:
  void use(const DocumentPtr& document);

  DocumentPtr document_;  ///< what the figures below are of
  std::vector<view::ImportedBusy> busy_;
};

}  // namespace lockstep::app
