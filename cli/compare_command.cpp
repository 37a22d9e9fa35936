// lockstep compare: several strategies for one model on the same devices, in one table.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/compare_run.h"
#include "cli/scenario_flags.h"
#include "cli/scenario_text.h"
#include "cli/small_run.h"
#include "cli/terminal.h"
#include "core/error.h"
#include "core/io/csv_reader.h"
#include "core/io/json_writer.h"
#include "core/report_text.h"
#include "core/strategy_words.h"
#include "simulator/compare.h"
#include "simulator/parallel.h"
#include "visualizer/models/budget.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "Strategies side by side: what fits, how long a step takes and why.\n\n"
    "  lockstep compare --model llama-3.1-8b\n"
    "  lockstep compare --model gpt2-xl --devices 4 --global-batch 64 ddp fsdp zero1,tp=2,sp\n"
    "  lockstep compare --model llama-3.1-70b --devices 64 --recompute full zero1,tp=8,sp,pp=4 "
    "fsdp\n\n"
    "A strategy is a data-parallel kind with tp=N, sp, pp=N, schedule=NAME, chunks=N, "
    "micro-batch=N\n"
    "or any KEY=VALUE of the scenario, separated by commas; dp is what tp and pp leave over.\n\n"
    "With --run they are simulated and run for real on this machine, operation by operation:\n\n"
    "  lockstep calibrate --out here.json && lockstep compare --run --cluster here.json\n"
    "  lockstep compare --run --strategy fsdp --dp 3 --model llama-tiny --json\n";

/// Ranks of a run when nothing is said, as `lockstep train` has them.
constexpr std::int64_t kDefaultRanks = 2;

struct CompareCommand {
  ScenarioFlags flags;
  std::vector<std::string> strategies;
  std::int64_t devices = 0;
  int threads = 0;
  bool json = false;
  bool csv = false;
  bool strict = false;
  bool real = false;
  int steps = 9;

  int run() const {
    if (flags.lists_keys()) {
      print(ScenarioFlags::keys_text());
      return 0;
    }
    if (real) {
      return run_for_real();
    }
    const Scenario given = flags.scenario();
    if (devices > 0 && flags.sets("strategy.data.degree")) {
      throw UsageError("flags", "--dp follows from --devices, tp and pp; give one of the two");
    }
    const std::int64_t count = device_count(given);
    const Scenario base = with_shared_batch(given, count);
    const std::vector<std::string> words =
        strategies.empty() ? usual_strategies(base, count) : strategies;
    std::vector<Scenario> scenarios;
    scenarios.reserve(words.size());
    for (const std::string& each : words) {
      scenarios.push_back(with_strategy(base, each, count));
    }
    std::vector<StrategyOutcome> outcomes(words.size());
    {
      const Progress progress("simulating");
      sim::for_all(words.size(), sim::thread_count(threads, words.size()), [&](int, std::size_t i) {
        outcomes[i] = sim::compare(words[i], scenarios[i]);
      });
    }
    const view::Budget budget(outcomes);
    const std::vector<view::BudgetRow>& rows = budget.rows();
    print(json ? as_json(rows, count) : csv ? as_csv(rows) : as_text(base, budget, count));
    const bool all_fit =
        std::all_of(rows.begin(), rows.end(), [](const view::BudgetRow& row) { return row.fits; });
    return strict && !all_fit ? static_cast<int>(ErrorKind::kCheckFailed) : 0;
  }

 private:
  std::int64_t device_count(const Scenario& base) const {
    const std::int64_t count = devices > 0                      ? devices
                               : base.strategy.world_size() > 1 ? base.strategy.world_size()
                                                                : base.cluster.devices();
    if (count > kMaxWorldSize) {
      throw UsageError("flags", fmt::format("--devices {}: at most {}", count, kMaxWorldSize));
    }
    return count;
  }

  /// One scenario when flags or a file say which; else the strategies that are named, or the usual
  /// ones on two ranks.
  int run_for_real() const {
    if (csv) {
      throw UsageError("flags", "--run: --json or text, no --csv");
    }
    const Scenario start = small_run();
    const Scenario given = flags.scenario(&start);
    const bool one = strategies.empty() && flags.names_strategy();
    std::vector<ComparedRun> runs;
    if (one) {
      runs.push_back(compare_real(given, "", steps));
      if (!runs.front().refused.empty()) {
        throw NotSupportedError("compare", runs.front().refused);
      }
    } else {
      const std::int64_t count = devices > 0 ? devices : kDefaultRanks;
      const Scenario base = with_shared_batch(given, count);
      for (const std::string& each :
           strategies.empty() ? usual_strategies(base, count) : strategies) {
        runs.push_back(compare_real(with_strategy(base, each, count), each, steps));
      }
    }
    if (json) {
      print(runs_json(runs, one));
    } else {
      print(scenario_line(given) + "\n\n" + (one ? run_text(runs.front()) : runs_table(runs)));
    }
    const bool all_agree = std::all_of(runs.begin(), runs.end(), [](const ComparedRun& run) {
      return run.refused.empty() && run.memory_matches && run.transfer_difference.empty();
    });
    return strict && !all_agree ? static_cast<int>(ErrorKind::kCheckFailed) : 0;
  }

  static std::string as_text(const Scenario& base, const view::Budget& budget, std::int64_t count) {
    std::string text = workload_line(base, count) + "\n\n";
    TextTable table({{"strategy"},
                     {"fits"},
                     {"peak", Align::kRight},
                     {"ms/step", Align::kRight},
                     {"tokens/s", Align::kRight},
                     {"MFU %", Align::kRight},
                     {"exposed %", Align::kRight},
                     {"bubble %", Align::kRight},
                     {"sent/rank", Align::kRight}});
    for (const view::BudgetRow& row : budget.rows()) {
      if (row.refused) {
        table.add({row.words, "-", "-", "-", "-", "-", "-", "-", "-"});
        continue;
      }
      table.add({row.words,
                 row.fits ? "yes" : "no",
                 bytes_text(row.peak_bytes),
                 fmt::format("{:.1f}", row.step_s * 1e3),
                 grouped(std::llround(row.tokens_per_s)),
                 fmt::format("{:.1f}", row.mfu * 100),
                 fmt::format("{:.1f}", row.exposed * 100),
                 fmt::format("{:.1f}", row.bubble * 100),
                 bytes_text(std::llround(row.sent_bytes))});
    }
    text += table.text("  ");
    for (const view::BudgetRow& row : budget.rows()) {
      if (row.refused) {
        text += fmt::format("  {}: {}\n", row.words, row.note);
      }
    }
    const auto best = budget.fastest();
    return text + (best ? fmt::format("\nfastest that fits: {}\n", budget.rows()[*best].words)
                   : std::all_of(budget.rows().begin(),
                                 budget.rows().end(),
                                 [](const view::BudgetRow& row) { return row.refused; })
                       ? "\nnone of them can be planned\n"
                       : "\nnone of them fits\n");
  }

  static std::string as_json(const std::vector<view::BudgetRow>& rows, std::int64_t count) {
    JsonWriter writer;
    writer.begin_object();
    writer.field("schema_version", 1);
    writer.field("devices", count);
    writer.begin_array("strategies");
    for (const view::BudgetRow& row : rows) {
      writer.begin_object();
      writer.field("strategy", row.words);
      if (row.refused) {
        writer.field("refused", row.note);
      } else {
        writer.field("fits", row.fits);
        writer.field("peak_bytes", row.peak_bytes);
        writer.field("device_bytes", row.device_bytes);
        writer.field("step_time_s", row.step_s);
        writer.field("tokens_per_s", row.tokens_per_s);
        writer.field("mfu", row.mfu);
        writer.field("exposed_fraction", row.exposed);
        writer.field("bubble_fraction", row.bubble);
        writer.field("sent_bytes_per_rank", row.sent_bytes);
      }
      writer.end_object();
    }
    writer.end_array();
    writer.end_object();
    return writer.text();
  }

  static std::string as_csv(const std::vector<view::BudgetRow>& rows) {
    std::string text =
        "strategy,fits,peak_bytes,step_time_s,tokens_per_s,mfu,exposed_fraction,bubble_fraction,"
        "sent_bytes_per_rank,refused\n";
    for (const view::BudgetRow& row : rows) {
      text += fmt::format("{},{},{},{:.9g},{:.9g},{:.6g},{:.6g},{:.6g},{:.9g},{}\n",
                          csv_field(row.words),
                          row.fits,
                          row.peak_bytes,
                          row.step_s,
                          row.tokens_per_s,
                          row.mfu,
                          row.exposed,
                          row.bubble,
                          row.sent_bytes,
                          csv_field(row.refused ? row.note : ""));
    }
    return text;
  }
};

}  // namespace

void add_compare_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<CompareCommand>();
  CLI::App* app = program.add_subcommand("compare");
  app->description(kDescription);
  app->add_option("strategies", command->strategies, "default: eight usual ones");
  app->add_option("--devices", command->devices, "devices (default: all of the cluster)")
      ->check(CLI::Range(std::int64_t{1}, kMaxWorldSize));
  app->add_option("--threads", command->threads, "worker threads (default: one per core)")
      ->check(CLI::Range(1, 256));
  CLI::Option* json = app->add_flag("--json", command->json, "one JSON object");
  app->add_flag("--csv", command->csv, "one line per strategy")->excludes(json);
  app->add_flag("--strict",
                command->strict,
                "exit with 1 unless all of them fit; with --run: unless memory and collectives are "
                "as planned");
  CLI::Option* real =
      app->add_flag("--run", command->real, "run them for real on this machine, beside the plan");
  app->add_option("--steps", command->steps, "with --run: steps that count (default 9)")
      ->check(CLI::Range(1, 10'000))
      ->needs(real);
  command->flags.add_to(*app);
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
