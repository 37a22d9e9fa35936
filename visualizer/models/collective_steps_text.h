// CollectiveStepsText: a collective in a terminal, the text twin of the stepper.
//
//   all_reduce of 400 B fp32, ring, 4 ranks, 4 chunks: 6 steps, 12.3 us
//
//   before   chunk 0  1  2  3
//   rank 0         0  0  0  0
//   ...
//   step 0   chunk 0     1  2    3
//   rank 0         0     0  0  +0,3
//
// A cell says whose values are summed in it: "all", or ranks; "." is nothing. What came in this
// step has a "+" (added) or a "=" (passed on) before it.
#pragma once

#include <string>

#include "visualizer/models/collective_steps.h"

namespace lockstep::view {

struct CollectiveTextOptions {
  int most_steps = 64;   ///< further ones are only counted
  int most_chunks = 16;  ///< columns; further ones are only counted
  bool utf8 = false;     ///< the letter mu
};

/// Lines end with newlines; no blanks at line ends.
std::string collective_steps_text(const CollectiveSteps& steps,
                                  const CollectiveTextOptions& options = {});

}  // namespace lockstep::view
