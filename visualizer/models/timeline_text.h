// TimelineText: a step drawn in a terminal, the text twin of the timeline view.
//
//                   0 ms          5            10            15
//   rank 0 compute  F0FFF1FFF2FF........B0BBBBB......B1BBBBB..OO
//          pipeline ...=...=...~~~~~~~~=~~~~~~~~~=.............
//          memory   ▂▃▃▄▄▅▅▆▆▆▆▆▆▆▆▇▇▇▇▅▅▅▅▅▅▅▃▃▃▃▃▃▂▂▂  peak 45.20 GiB at 9.31 ms
//
// A letter is what ran for most of a cell; small letters when the cell was busy for less than half.
// Colour repeats what letters say, so nothing is lost without it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/trace.h"
#include "visualizer/models/text_parts.h"
#include "visualizer/models/timeline.h"

namespace lockstep::view {

struct TimelineTextOptions {
  int width = 100;                        ///< columns of the whole picture; at least 40 are taken
  bool colour = false;                    ///< ANSI colours
  bool utf8 = false;                      ///< blocks instead of ASCII for memory, and the letter mu
  std::vector<int> ranks = {};            ///< empty: usual_ranks(step, 16)
  std::optional<TimeWindow> window = {};  ///< nothing: the whole step
  bool memory = true;
  bool path = false;  ///< below it what the critical path consists of
};

/// Lines end with newlines; no blanks at line ends.
std::string timeline_text(const Plan& plan,
                          const TraceStep& step,
                          const TimelineTextOptions& options = {});

}  // namespace lockstep::view
