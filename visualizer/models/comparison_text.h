// ComparisonText: two steps in a terminal, the text twin of the comparison view: where the time
// went in both, and the operations that differ most.
//
//   A ddp: 12.3 ms   B fsdp: 14.0 ms   B - A: +1.70 ms (+13.8 %)
//
//   of a rank's step     A         B      B - A
//   compute        9.10 ms   9.10 ms          0
//   exposed dp     3.20 ms   4.90 ms   +1.70 ms
#pragma once

#include <string>

#include "visualizer/models/comparison.h"

namespace lockstep::view {

struct ComparisonTextOptions {
  std::string a_name = "A";
  std::string b_name = "B";
  int most = 10;  ///< operations listed, and unmatched ones of each side
  bool utf8 = false;
};

/// Lines end with newlines; no blanks at line ends.
std::string comparison_text(const Comparison& comparison,
                            const ComparisonTextOptions& options = {});

}  // namespace lockstep::view
