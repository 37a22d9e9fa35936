// lockstep trace: what a trace file says: the report of a step, its picture, its form for other
// viewers.
#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/report_print.h"
#include "cli/run_folder.h"
#include "core/error.h"
#include "core/io/trace_export.h"
#include "core/io/trace_io.h"
#include "core/memory_report.h"
#include "core/names.h"
#include "core/report.h"
#include "visualizer/models/timeline_text.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "The report of a trace that simulate or train wrote; its picture; a file for Perfetto.\n\n"
    "  lockstep trace step.lstrace --text\n"
    "  lockstep trace step.lstrace --ranks 0,8 --chrome step.json   (open it at ui.perfetto.dev)\n"
    "  lockstep trace step.lstrace --format kineto traces/          (a PyTorch profile per rank)\n"
    "  lockstep trace lockstep-run --json                           (a run's last step)\n";

constexpr std::size_t kNamedRanks = 8;

/// What a form is for, behind "wrote FILE".
std::string_view use_of(const std::string& format) {
  return format == "chrome"       ? ": open it at ui.perfetto.dev"
         : format == "kineto"     ? ": a folder of PyTorch profiles, for Holistic Trace Analysis"
         : format == "memory_viz" ? ": drop it on pytorch.org/memory_viz, a device per rank"
                                  : ": a row per span";
}

struct TraceCommand {
  std::string file;
  std::string chrome;
  std::vector<std::string> format;  ///< a form, then where it goes
  std::vector<int> ranks;
  int step = 0;  ///< 0: the last
  int width = 0;
  bool text = false;
  bool json = false;
  bool csv = false;

  int run() const {
    LoadedTrace loaded;
    Report report;
    MemoryReport memory;
    {
      const Progress progress("reading the trace");
      loaded = load_trace(trace_file_of(file, "trace"));
      check_arguments(loaded);
      report = make_report(loaded.plan, loaded.trace, report_facts(loaded.scenario), step - 1);
      memory = memory_report(loaded.scenario);
    }
    for (const auto& [form, path] : exports()) {
      const Progress progress("writing " + path);
      export_trace({parse_trace_form(form).value(), path, ranks},
                   loaded.scenario,
                   loaded.plan,
                   loaded.trace);
    }
    const ReportView view{loaded.scenario, loaded.plan, report, &memory, false};
    if (json) {
      print(as_json(view, loaded.trace));
    } else {
      print(csv ? report_csv(view) : as_text(view, loaded.trace));
    }
    return 0;
  }

 private:
  /// Form and path.
  std::vector<std::pair<std::string, std::string>> exports() const {
    std::vector<std::pair<std::string, std::string>> all;
    if (!chrome.empty()) {
      all.emplace_back("chrome", chrome);
    }
    for (std::size_t i = 0; i + 1 < format.size(); i += 2) {
      all.emplace_back(format[i], format[i + 1]);
    }
    return all;
  }

  void check_arguments(const LoadedTrace& loaded) const {
    for (const auto& [form, path] : exports()) {
      if (!parse_trace_form(form)) {
        throw UsageError("flags", "--format: " + not_valid_message(form, trace_form_names()));
      }
    }
    const auto steps = static_cast<int>(loaded.trace.steps.size());
    if (step > steps) {
      throw UsageError("flags", fmt::format("--step {}: the trace has {}", step, steps));
    }
    const int world = loaded.plan.mesh.world_size();
    for (const int rank : ranks) {
      if (rank < 0 || rank >= world) {
        throw UsageError(
            "flags", fmt::format("--ranks {} is not a rank: there are {}, from 0", rank, world));
      }
    }
  }

  const TraceStep& shown_step(const Trace& trace) const {
    return step == 0 ? trace.steps.back() : trace.steps[static_cast<std::size_t>(step) - 1];
  }

  static std::string as_json(const ReportView& view, const Trace& trace) {
    JsonWriter json;
    json.begin_object();
    write_report(json, view);
    json.field("steps", static_cast<std::int64_t>(trace.steps.size()));
    json.begin_object("facts");
    for (const auto& [name, value] : trace.facts) {
      json.field(name.c_str(), value);
    }
    json.end_object();
    json.end_object();
    return json.text();
  }

  /// Which ranks the exported file shows, when the flags do not say.
  std::string exports_text(const TraceStep& step_shown, int world) const {
    std::string line;
    for (const auto& [form, path] : exports()) {
      line += fmt::format("\nwrote {}{}", path, use_of(form));
    }
    if (!ranks.empty() || step_shown.tracks.size() == static_cast<std::size_t>(world)) {
      return line + "\n";
    }
    line += "; it shows rank";
    const std::size_t named = std::min(step_shown.tracks.size(), kNamedRanks);
    for (std::size_t i = 0; i < named; ++i) {
      const TraceTrack& track = step_shown.tracks[i];
      line +=
          fmt::format("{} {} (for {})", i == 0 ? "" : ",", track.ranks.front(), track.ranks.size());
    }
    if (named < step_shown.tracks.size()) {
      line += fmt::format(", and {} more", step_shown.tracks.size() - named);
    }
    return line + "; --ranks chooses others\n";
  }

  std::string as_text(const ReportView& view, const Trace& trace) const {
    std::string result = report_text(view);
    if (trace.steps.size() > 1) {
      result += fmt::format("step {} of {}\n",
                            step == 0 ? trace.steps.size() : static_cast<std::size_t>(step),
                            trace.steps.size());
    }
    for (const auto& [name, value] : trace.facts) {
      result += fmt::format("{}: {}\n", name, value);
    }
    if (text) {
      const Terminal terminal = stdout_terminal();
      view::TimelineTextOptions options;
      options.width = width > 0 ? width : terminal_width();
      options.colour = terminal.colour;
      options.utf8 = terminal.utf8;
      options.ranks = ranks;
      result += "\n" + view::timeline_text(view.plan, shown_step(trace), options);
    }
    return exports().empty()
               ? result
               : result + exports_text(trace.steps.front(), view.plan.mesh.world_size());
  }
};

}  // namespace

void add_trace_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<TraceCommand>();
  CLI::App* app = program.add_subcommand("trace");
  app->description(kDescription);
  app->add_option("file", command->file, "a trace file")->required()->type_name("FILE");
  app->add_option("--chrome", command->chrome, "write Chrome JSON for Perfetto")->type_name("FILE");
  app->add_option("--format",
                  command->format,
                  "write it as chrome, memory_viz, csv or json to a file, as kineto to a folder")
      ->type_size(2)
      ->type_name("FORM PATH");
  app->add_option("--ranks", command->ranks, "ranks of the picture and of what is written")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_option("--step", command->step, "1, 2, 3: that step of the trace (default: the last)")
      ->check(CLI::Range(1, 1'000'000'000));
  app->add_flag("--text", command->text, "draw the timeline");
  app->add_option("--width", command->width, "columns of the timeline (default: the terminal's)")
      ->check(CLI::Range(40, 2000));
  CLI::Option* json = app->add_flag("--json", command->json, "one JSON object");
  app->add_flag("--csv", command->csv, "where the time goes, one line per kind of rank")
      ->excludes(json);
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
