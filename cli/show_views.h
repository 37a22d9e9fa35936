// Views that `lockstep show` draws: one line of a table for each, with its text and its JSON.
//
//     for (const ShownView& it : shown_views()) ...
//
// The models and their text twins are in visualizer/models/; here they meet the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/collective_record.h"
#include "core/io/json_writer.h"
#include "core/plan.h"
#include "core/scenario.h"
#include "core/trace.h"
#include "visualizer/models/text_parts.h"

namespace lockstep::cli {

/// A step, and where it comes from.
struct ShownStep {
  std::string name;  ///< the file's; empty when it was simulated
  const Scenario& scenario;
  const Plan& plan;
  const TraceStep& step;
};

/// What views are drawn of: as many steps, or the record, as the view's Source says.
struct ShowInput {
  std::vector<ShownStep> steps;
  const CollectiveRecord* record = nullptr;
  std::vector<int> ranks;         ///< empty: those that a view finds interesting
  std::optional<Nanoseconds> at;  ///< since the step's begin; nothing: the moment that tells most
  bool colour = false;
  view::TextOptions text;

  const Scenario& scenario() const { return steps.front().scenario; }
  const Plan& plan() const { return steps.front().plan; }
  const TraceStep& step() const { return steps.front().step; }
};

/// What a view needs.
enum class Source : std::uint8_t {
  kStep,      ///< of a scenario, a trace file or a run folder
  kTwoSteps,  ///< of two files or folders
  kRecord,    ///< a file that `lockstep collective --out` wrote
};

struct ShownView {
  const char* name;
  const char* help;
  Source source;
  std::string (*text)(const ShowInput&);
  /// Fields into an open object.
  void (*json)(JsonWriter&, const ShowInput&);
};

std::span<const ShownView> shown_views();

/// The timeline as an SVG document.
std::string timeline_picture(const ShowInput& input);

}  // namespace lockstep::cli
