// Views that `lockstep show` draws: one line of a table for each, with its text and its JSON.
//
//     for (const ShownView& it : shown_views()) ...
//
// The models and their text twins are in visualizer/models/; here they meet the command line.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/json_writer.h"
#include "core/plan.h"
#include "core/scenario.h"
#include "core/trace.h"
#include "visualizer/models/text_parts.h"

namespace lockstep::cli {

/// What views are drawn of.
struct ShowInput {
  const Scenario& scenario;
  const Plan& plan;
  const TraceStep& step;
  std::vector<int> ranks;         ///< empty: those that a view finds interesting
  std::optional<Nanoseconds> at;  ///< since the step's begin; nothing: the moment that tells most
  bool colour = false;
  view::TextOptions text;
};

struct ShownView {
  const char* name;
  const char* help;
  std::string (*text)(const ShowInput&);
  /// Fields into an open object.
  void (*json)(JsonWriter&, const ShowInput&);
};

std::span<const ShownView> shown_views();

}  // namespace lockstep::cli
