// Readouts: a flow of named figures above a picture, each with a tag, wrapping where the line ends.
//
//     Readouts readouts;                       // after the last item of a line, or at its begin
//     readouts.add("buckets.exposed", S::kSplitExposed, "3.10 ms");
#pragma once

#include <string_view>

#include <imgui.h>

#include "visualizer/ui/strings.h"

namespace lockstep::views {

class Readouts {
 public:
  /// `beside`: begins on the line of the item before.
  explicit Readouts(bool beside);
  void add(std::string_view tag, ui::S name, std::string_view value);

 private:
  bool beside_;
  bool one_line_;  ///< in a low window: what does not fit is left to the text twin
  float right_;
};

}  // namespace lockstep::views
