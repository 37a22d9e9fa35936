// lockstep simulate: one step of a scenario on its cluster, by discrete events.
#include <chrono>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/cost_text.h"
#include "cli/report_print.h"
#include "cli/scenario_flags.h"
#include "core/error.h"
#include "core/io/trace_io.h"
#include "core/memory_report.h"
#include "core/planner/planner.h"
#include "core/report.h"
#include "simulator/simulate.h"
#include "visualizer/models/timeline_text.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "When every operation of a step starts and ends, what is exposed, what waits for whom.\n\n"
    "  lockstep simulate --model llama-3.1-8b --strategy fsdp --dp 8\n"
    "  lockstep simulate --model gpt2-xl --pp 4 --accumulate 8 --schedule zb-h1 --ranks 0,3\n"
    "  lockstep simulate --model gpt2 --strategy ddp --dp 8 --slow-rank 3:1.5 --trace "
    "step.lstrace\n";

/// "RANK:FACTOR"
sim::RankFactor rank_factor(const char* flag,
                            const std::string& text,
                            const char* form = "RANK:FACTOR") {
  std::size_t used = 0;
  try {
    const int rank = std::stoi(text, &used);
    if (used < text.size() && text[used] == ':') {
      std::size_t rest = 0;
      const double factor = std::stod(text.substr(used + 1), &rest);
      if (used + 1 + rest == text.size()) {
        return {rank, factor};
      }
    }
  } catch (const std::exception&) {  // not a number: said below
  }
  throw UsageError("flags", fmt::format("{} {} is not {}", flag, text, form));
}

std::vector<sim::RankFactor> rank_factors(const char* flag, const std::vector<std::string>& texts) {
  std::vector<sim::RankFactor> factors;
  factors.reserve(texts.size());
  for (const std::string& text : texts) {
    factors.push_back(rank_factor(flag, text));
  }
  return factors;
}

struct SimulateCommand {
  ScenarioFlags flags;
  std::vector<std::string> slow_ranks;
  std::vector<std::string> slow_links;
  std::vector<std::string> skewed;
  std::string failed;
  double timeout_s = 600;
  double jitter = 0;
  std::uint64_t jitter_seed = 1;
  bool overflow = false;
  bool single_connection = false;
  bool unfold = false;
  int iteration = 0;
  std::vector<int> ranks;
  int width = 0;
  std::string trace_file;
  bool json = false;
  bool csv = false;
  bool explain = false;
  bool no_timeline = false;
  bool strict = false;

  int run() const {
    if (flags.lists_keys()) {
      print(ScenarioFlags::keys_text());
      return 0;
    }
    const Scenario scenario = flags.scenario();
    if (overflow && !scenario.training.scales_loss()) {
      throw UsageError("flags", "--assume-overflow: without loss scaling no step is skipped");
    }
    Plan plan;
    sim::Simulation run;
    MemoryReport memory;
    const auto begin = std::chrono::steady_clock::now();
    {
      const Progress progress("simulating");
      plan = make_plan(scenario, {false, false});
      run = sim::simulate(plan, scenario.cluster, options());
      memory = memory_report(scenario, {.plan = &plan});
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    if (!trace_file.empty()) {
      save_trace(trace_file, scenario, plan, run.trace);
    }
    const Report report = make_report(plan, run.trace, report_facts(scenario));
    const ReportView view{scenario, plan, report, &memory, explain};
    if (json) {
      print(as_json(view, wall.count()));
    } else {
      print(csv ? report_csv(view) : as_text(view, run.trace));
    }
    if (!run.trace.stalls.empty()) {
      return static_cast<int>(ErrorKind::kTimeout);
    }
    return strict && !memory.fits() ? static_cast<int>(ErrorKind::kCheckFailed) : 0;
  }

 private:
  sim::SimulationOptions options() const {
    sim::SimulationOptions options;
    options.fold = !unfold;
    options.iteration = iteration - 1;
    options.what_if.slow_ranks = rank_factors("--slow-rank", slow_ranks);
    options.what_if.slow_links = rank_factors("--slow-link", slow_links);
    options.what_if.skewed = rank_factors("--skew", skewed);
    options.what_if.jitter = jitter;
    options.what_if.seed = jitter_seed;
    options.what_if.timeout_s = timeout_s;
    options.what_if.assume_overflow = overflow;
    options.what_if.single_connection = single_connection;
    if (!failed.empty()) {
      const sim::RankFactor it = rank_factor("--fail-rank", failed, "RANK:SECONDS");
      options.what_if.failed = sim::FailedRank{it.rank, it.factor};
    }
    return options;
  }

  static std::string as_json(const ReportView& view, double wall) {
    JsonWriter json;
    json.begin_object();
    write_report(json, view);
    json.field("simulator_wall_s", wall);
    json.end_object();
    return json.text();
  }

  std::string as_text(const ReportView& view, const Trace& trace) const {
    std::string text = report_text(view);
    if (explain) {
      text += "\n" + cost_text(view.scenario, view.plan, trace.steps.front());
    }
    if (!no_timeline) {
      const Terminal terminal = stdout_terminal();
      view::TimelineTextOptions options;
      options.width = width > 0 ? width : terminal_width();
      options.colour = terminal.colour;
      options.utf8 = terminal.utf8;
      options.ranks = ranks;
      text += "\n" + view::timeline_text(view.plan, trace.steps.front(), options);
    }
    if (!trace_file.empty()) {
      text += fmt::format("\ntrace: {}; lockstep trace reads it, with --chrome for Perfetto\n",
                          trace_file);
    }
    return text;
  }
};

}  // namespace

void add_simulate_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<SimulateCommand>();
  CLI::App* app = program.add_subcommand("simulate");
  app->description(kDescription);
  const auto list = [&](const char* flag, std::vector<std::string>& values, const char* help) {
    app->add_option(flag, values, help)->delimiter(',')->allow_extra_args(false)->group("What if");
  };
  list("--slow-rank", command->slow_ranks, "RANK:FACTOR, its compute takes FACTOR times as long");
  list("--slow-link", command->slow_links, "RANK:FACTOR, its messages take FACTOR times as long");
  list("--skew", command->skewed, "RANK:FACTOR, it has FACTOR times the data");
  app->add_option("--fail-rank", command->failed, "RANK:SECONDS, it dies at that time")
      ->group("What if");
  app->add_option("--timeout", command->timeout_s, "seconds until a failure is noticed (600)")
      ->check(CLI::Range(0.0, 1e6))
      ->group("What if");
  app->add_option("--jitter", command->jitter, "sigma of the log-normal factor on compute")
      ->check(CLI::Range(0.0, 2.0))
      ->group("What if");
  app->add_option("--jitter-seed", command->jitter_seed, "of the jitter (1)")->group("What if");
  app->add_flag("--assume-overflow", command->overflow, "the step that loss scaling skips")
      ->group("What if");
  app->add_flag("--single-connection",
                command->single_connection,
                "CUDA_DEVICE_MAX_CONNECTIONS=1: operations start in the order of their issue")
      ->group("What if");
  app->add_flag("--unfold", command->unfold, "simulate every rank, also those that do the same");
  app->add_option("--iteration",
                  command->iteration,
                  "1, 2, 3: the form of that step (default: the one that repeats)")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--ranks", command->ranks, "ranks of the timeline")->delimiter(',');
  app->add_option("--width", command->width, "columns of the timeline (default: the terminal's)")
      ->check(CLI::Range(40, 2000));
  app->add_option("--trace", command->trace_file, "file to write the trace to");
  CLI::Option* json = app->add_flag("--json", command->json, "one JSON object");
  app->add_flag("--csv", command->csv, "where the time goes, one line per kind of rank")
      ->excludes(json);
  app->add_flag("--explain", command->explain, "every figure with its formula and values");
  app->add_flag("--no-timeline", command->no_timeline, "leave the picture out");
  app->add_flag("--strict", command->strict, "exit with 1 when it does not fit");
  command->flags.add_to(*app);
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
