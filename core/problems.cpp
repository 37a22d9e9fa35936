#include "core/problems.h"

#include <algorithm>

namespace lockstep {

std::string Problems::one_line() const {
  const std::size_t shown = std::min(list_.size(), kShownOnOneLine);
  std::string line;
  for (std::size_t i = 0; i < shown; ++i) {
    line += (i == 0 ? "" : "; ") + list_[i].place + ": " + list_[i].message;
  }
  if (shown < list_.size()) {
    line += "; and " + std::to_string(list_.size() - shown) + " more";
  }
  return line;
}

}  // namespace lockstep
