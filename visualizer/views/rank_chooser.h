// RankChooser: which rank a view of one rank shows. Ranks that did the same at the same times are
// one choice. PageUp and PageDown choose too.
#pragma once

#include <string>
#include <vector>

#include "core/trace.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class RankChooser {
 public:
  /// Of a step; keeps the rank where there is such a one.
  void use(const TraceStep& step);
  int rank() const { return rank_; }
  /// True when another was chosen.
  bool draw(bool has_keys);

  static KeyHelp keys() { return {"PageUp PageDown", ui::S::kKeyRank}; }

 private:
  std::vector<int> ranks_;          ///< the first of each choice
  std::vector<std::string> texts_;  ///< "rank 0 and 3 like it"
  int rank_ = 0;
};

}  // namespace lockstep::views
