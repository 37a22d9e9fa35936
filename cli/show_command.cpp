// lockstep show: a view of a step, as the visualizer paints it, in text or JSON.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/run_folder.h"
#include "cli/scenario_flags.h"
#include "cli/show_views.h"
#include "cli/terminal.h"
#include "core/error.h"
#include "core/io/collective_io.h"
#include "core/io/files.h"
#include "core/io/trace_io.h"
#include "core/names.h"
#include "core/planner/planner.h"
#include "simulator/simulate.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "A view of one step, as the visualizer has it: of a scenario, which is simulated, of a trace "
    "file,\nor of a run folder.\n\n"
    "  lockstep show buckets --model gpt2 --strategy ddp --dp 8\n"
    "  lockstep show memory step.lstrace --ranks 3 --at 12.5\n"
    "  lockstep show timeline run/ --svg step.svg\n"
    "  lockstep show compare a.lstrace b.lstrace\n\n"
    "Exit codes: 0 drawn, also when the view says why it is empty; 2 usage; 3 bad input file; 7 "
    "not\nsupported here.\n";

std::string views_text() {
  std::string text = "Views:\n";
  for (const ShownView& it : shown_views()) {
    text += fmt::format("  {:<10}{}\n", it.name, it.help);
  }
  return text;
}

struct ShowCommand {
  ScenarioFlags flags;
  std::string view;
  std::vector<std::string> files;
  std::vector<int> ranks;
  double at_ms = -1;
  int iteration = 0;
  int width = 0;
  bool text = false;
  bool json = false;
  std::string svg;

  int run() const {
    if (flags.lists_keys()) {
      print(ScenarioFlags::keys_text());
      return 0;
    }
    const ShownView& shown = find_view();
    check_flags(shown);
    const Terminal terminal = stdout_terminal();
    ShowInput input;
    input.ranks = ranks;
    input.colour = terminal.colour;
    input.text = {width > 0 ? width : terminal_width(), terminal.utf8};
    if (at_ms >= 0) {
      input.at = static_cast<Nanoseconds>(std::llround(at_ms * 1e6));
    }
    if (shown.source == Source::kRecord) {
      const CollectiveRecord record = load_collective(files.front());
      input.record = &record;
      show(shown, input);
      return 0;
    }
    const std::vector<LoadedTrace> loaded = load();
    for (std::size_t i = 0; i < loaded.size(); ++i) {
      check_ranks(loaded[i]);
      input.steps.push_back({files.empty() ? "" : files[i],
                             loaded[i].scenario,
                             loaded[i].plan,
                             shown_step(loaded[i].trace)});
    }
    show(shown, input);
    return 0;
  }

 private:
  const ShownView& find_view() const {
    std::vector<std::string_view> names;
    for (const ShownView& it : shown_views()) {
      if (view == it.name) {
        return it;
      }
      names.emplace_back(it.name);
    }
    throw UsageError("flags",
                     fmt::format("unknown view {}, nearest is {}; one of {}",
                                 printable(view, 40),
                                 nearest(view, names),
                                 fmt::join(names, ", ")));
  }

  void check_flags(const ShownView& shown) const {
    const std::size_t count = files.size();
    if (shown.source == Source::kRecord && count != 1) {
      throw UsageError("flags", "show steps needs one file, of `lockstep collective --out FILE`");
    }
    if (shown.source == Source::kTwoSteps && count != 2) {
      throw UsageError("flags",
                       fmt::format("show {} needs two trace files or run folders", shown.name));
    }
    if (shown.source == Source::kStep && count > 1) {
      throw UsageError("flags", fmt::format("show {} takes one file", shown.name));
    }
    if (count > 0 && flags.names_anything()) {
      throw UsageError("flags",
                       fmt::format("{} says which scenario it is of; flags of a scenario say "
                                   "nothing beside it",
                                   files.front()));
    }
    if (!svg.empty() && view != "timeline") {
      throw UsageError("flags", "--svg draws the timeline: lockstep show timeline --svg FILE");
    }
  }

  std::vector<LoadedTrace> load() const {
    const Progress progress(files.empty() ? "simulating" : "reading the trace");
    std::vector<LoadedTrace> loaded;
    for (const std::string& file : files) {
      loaded.push_back(load_trace(trace_file_of(file, "show")));
    }
    if (loaded.empty()) {
      loaded.push_back(simulate());
    }
    return loaded;
  }

  LoadedTrace simulate() const {
    LoadedTrace loaded;
    loaded.scenario = flags.scenario();
    loaded.plan = make_plan(loaded.scenario, {false, false});
    sim::SimulationOptions options;
    options.iteration = iteration - 1;
    loaded.trace = sim::simulate(loaded.plan, loaded.scenario.cluster, options).trace;
    return loaded;
  }

  void check_ranks(const LoadedTrace& loaded) const {
    const int world = loaded.plan.mesh.world_size();
    for (const int rank : ranks) {
      if (rank < 0 || rank >= world) {
        throw UsageError(
            "flags", fmt::format("--ranks {} is not a rank: there are {}, from 0", rank, world));
      }
    }
    const auto steps = static_cast<int>(loaded.trace.steps.size());
    if (!files.empty() && iteration > steps) {
      throw UsageError("flags", fmt::format("--step {}: the trace has {}", iteration, steps));
    }
  }

  const TraceStep& shown_step(const Trace& trace) const {
    if (trace.steps.empty()) {
      throw BadInputError("show", "a trace without steps");
    }
    return files.empty() || iteration == 0 ? trace.steps.back()
                                           : trace.steps[static_cast<std::size_t>(iteration) - 1];
  }

  void show(const ShownView& shown, const ShowInput& input) const {
    if (!svg.empty()) {
      write_whole(svg, {timeline_picture(input)}, "show");
      print(fmt::format("{} written\n", svg));
      return;
    }
    print(json ? as_json(shown, input) : shown.text(input));
  }

  static std::string as_json(const ShownView& shown, const ShowInput& input) {
    JsonWriter json;
    json.begin_object();
    json.field("schema_version", 1);
    json.field("view", shown.name);
    if (shown.source == Source::kStep) {
      json.field("step_time_ns", input.step().end - input.step().begin);
    }
    shown.json(json, input);
    json.end_object();
    return json.text();
  }
};

}  // namespace

void add_show_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<ShowCommand>();
  CLI::App* app = program.add_subcommand("show");
  app->description(kDescription + ("\n" + views_text()));
  app->add_option("view", command->view, "one of the views above")->required()->type_name("VIEW");
  app->add_option("file",
                  command->files,
                  "trace files or run folders instead of a scenario: one, for compare two")
      ->type_name("FILE")
      ->expected(0, 2);
  app->add_option("--ranks", command->ranks, "ranks to show; views of one rank take the first")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_option("--at", command->at_ms, "moment in ms since the step's begin")
      ->check(CLI::Range(0.0, 1e12));
  app->add_option("--step",
                  command->iteration,
                  "1, 2, 3: that step (default: the last of a trace; the one that repeats)")
      ->check(CLI::Range(1, 1'000'000'000));
  app->add_option("--width", command->width, "columns of the picture (default: the terminal's)")
      ->check(CLI::Range(40, 2000));
  CLI::Option* text = app->add_flag("--text", command->text, "a picture in text (the default)");
  CLI::Option* json = app->add_flag("--json", command->json, "one JSON object")->excludes(text);
  app->add_option("--svg", command->svg, "timeline: write an SVG picture to this file")
      ->type_name("FILE")
      ->excludes(text)
      ->excludes(json);
  command->flags.add_to(*app);
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
