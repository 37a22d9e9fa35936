// PipelineGridText: a pipeline in a terminal, the text twin of the pipeline grid.
//
//   rank 0  F0F1F2F3......B0BBF4B1BB...
//           1.2.3.4.......              live activations
//
// A letter and the micro-batch, then the letter again for as long as it took; small letters are the
// odd chunks of a rank. Below a row: the activations in flight, by column.
#pragma once

#include <optional>
#include <string>

#include "visualizer/models/pipeline_grid.h"

namespace lockstep::view {

struct PipelineTextOptions {
  int width = 100;   ///< columns of the whole picture; at least 40 are taken
  bool live = true;  ///< rows of activations in flight
  bool utf8 = false;
  int rank = 0;  ///< whose pipeline, where there are several
};

/// Picture, a table by rank, and the formula beside what was found. Lines end with newlines; no
/// blanks at line ends.
std::string pipeline_grid_text(const PipelineGrid& grid,
                               const std::optional<BubbleFormula>& formula,
                               const PipelineTextOptions& options = {});

/// The same of a step, and below it the schedule in unit time: what `lockstep show pipeline`
/// prints.
std::string pipeline_text(const Scenario& scenario,
                          const Plan& plan,
                          const TraceStep& step,
                          const PipelineTextOptions& options = {});

}  // namespace lockstep::view
