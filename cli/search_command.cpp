// lockstep search: the fastest layouts of a model on some devices.
#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/scenario_flags.h"
#include "cli/scenario_text.h"
#include "cli/terminal.h"
#include "core/error.h"
#include "core/io/csv_reader.h"
#include "core/io/json_writer.h"
#include "core/names.h"
#include "core/report_text.h"
#include "simulator/parallel.h"
#include "simulator/search.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "Every layout priced in closed form; the best are simulated, and the difference is printed.\n"
    "What flags say (--strategy, --tp, --pp, --schedule, --micro-batch, --recompute) stays so.\n\n"
    "  lockstep search --model llama-3.1-70b --devices 1024 --global-batch 1024\n"
    "  lockstep search --model llama-3.1-8b --devices 8 --global-batch 64 --top 5 --json\n";

/// The fastest by simulation need not be the first by estimate.
constexpr int kLeastSimulated = 20;

struct SearchCommand {
  ScenarioFlags flags;
  std::int64_t devices = 0;
  int top = 20;
  int threads = 0;
  bool json = false;
  bool csv = false;
  bool strict = false;

  int run() const {
    if (flags.lists_keys()) {
      print(ScenarioFlags::keys_text());
      return 0;
    }
    Scenario base = flags.scenario();
    sim::SearchSpace space;
    space.devices = devices > 0 ? devices : base.cluster.devices();
    restrict_to(base, space);
    if (space.devices > kMaxWorldSize) {
      throw UsageError("flags",
                       fmt::format("--devices {}: at most {}", space.devices, kMaxWorldSize));
    }
    if (base.training.global_batch == 0) {  // as compare has it: four samples per device
      base.training.global_batch = 4 * space.devices;
    }
    sim::SearchResult result;
    {
      const Progress progress("searching");
      const int simulated = std::max(top, kLeastSimulated);
      result = sim::search(base, space, {simulated, sim::thread_count(threads, std::size_t{256})});
      result.best.resize(std::min(result.best.size(), static_cast<std::size_t>(top)));
    }
    print(json ? as_json(result) : csv ? as_csv(result) : as_text(base, space, result));
    return strict && result.feasible == 0 ? static_cast<int>(ErrorKind::kCheckFailed) : 0;
  }

 private:
  /// What the command line fixes is not searched.
  void restrict_to(const Scenario& base, sim::SearchSpace& space) const {
    const StrategySpec& strategy = base.strategy;
    if (flags.sets("strategy.data.kind")) {
      space.data = {strategy.data.kind};
    }
    if (flags.sets("strategy.tensor.degree")) {
      space.tensor = {strategy.tensor.degree};
    }
    if (flags.sets("strategy.pipeline.degree")) {
      space.pipeline = {strategy.pipeline.degree};
    }
    if (flags.sets("strategy.pipeline.schedule")) {
      space.schedules = {{strategy.pipeline.schedule, strategy.pipeline.chunks}};
    }
    if (flags.sets("training.micro_batch")) {
      space.micro_batch = {base.training.micro_batch};
    }
    if (flags.sets("training.recompute")) {
      space.recompute = {base.training.recompute};
    }
    if (flags.sets("strategy.data.degree")) {
      throw UsageError("flags", "--dp follows from --devices, tp and pp; give --devices");
    }
    if (flags.sets("training.accumulate")) {
      throw UsageError("flags", "--accumulate follows from --global-batch, dp and micro-batch");
    }
  }

  static std::string words(const sim::Candidate& each) {
    const StrategySpec& strategy = each.strategy;
    std::string text = fmt::format("{},dp={}", name_of(strategy.data.kind), strategy.data.degree);
    if (strategy.data.replicate > 1) {
      text += fmt::format(",replicate={}", strategy.data.replicate);
    }
    if (strategy.data.flavour != ZeroFlavour::kPaper) {
      text += fmt::format(",flavour={}", name_of(strategy.data.flavour));
    }
    if (strategy.tensor.degree > 1) {
      text += fmt::format(
          ",tp={}{}", strategy.tensor.degree, strategy.tensor.sequence_parallel ? ",sp" : "");
    }
    if (strategy.pipeline.degree > 1) {
      text += fmt::format(
          ",pp={},schedule={}", strategy.pipeline.degree, name_of(strategy.pipeline.schedule));
      if (strategy.pipeline.chunks > 1) {
        text += fmt::format(",chunks={}", strategy.pipeline.chunks);
      }
    }
    return text +
           fmt::format(",micro-batch={},recompute={}", each.micro_batch, name_of(each.recompute));
  }

  static std::string as_text(const Scenario& base,
                             const sim::SearchSpace& space,
                             const sim::SearchResult& result) {
    std::string text = workload_line(base, space.devices) + "\n";
    text += fmt::format(
        "{} layouts, {} of them fit{}\n\n",
        grouped(result.candidates),
        grouped(result.feasible),
        result.best.empty() ? "" : fmt::format("; the best {} simulated", result.best.size()));
    text += result.best.empty() ? "" : best_text(base, result);
    if (!result.rejected.empty()) {
      text += "rejected:\n";
      TextTable reasons({{"layouts", Align::kRight}, {"reason"}});
      for (const auto& [reason, count] : result.rejected) {
        reasons.add({grouped(count), reason});
      }
      text += reasons.text("  ");
    }
    return text;
  }

  static std::string best_text(const Scenario& base, const sim::SearchResult& result) {
    TextTable table({{"", Align::kRight},
                     {"ms/step", Align::kRight},
                     {"tokens/s", Align::kRight},
                     {"peak", Align::kRight},
                     {"estimate", Align::kRight},
                     {"layout"}});
    int place = 0;
    for (const sim::Candidate& each : result.best) {
      const double step = *each.simulated_s;
      const double tokens =
          static_cast<double>(base.training.global_batch * base.training.seq_len) / step;
      table.add({std::to_string(++place),
                 fmt::format("{:.1f}", step * 1e3),
                 grouped(std::llround(tokens)),
                 bytes_text(each.peak_bytes),
                 fmt::format("{:+.1f} %", 100 * (each.estimated_s / step - 1)),
                 words(each)});
    }
    return table.text("  ") +
           fmt::format("\nestimate against simulation: {:.1f} % in the median\n\n",
                       100 * result.median_difference);
  }

  static void write_candidate(JsonWriter& writer, const sim::Candidate& each) {
    const StrategySpec& strategy = each.strategy;
    writer.begin_object();
    writer.field("strategy", words(each));
    writer.field("data", name_of(strategy.data.kind));
    writer.field("dp", strategy.data.degree);
    writer.field("replicate", strategy.data.replicate);
    writer.field("tp", strategy.tensor.degree);
    writer.field("sequence_parallel", strategy.tensor.sequence_parallel);
    writer.field("pp", strategy.pipeline.degree);
    writer.field("schedule", name_of(strategy.pipeline.schedule));
    writer.field("chunks", strategy.pipeline.chunks);
    writer.field("micro_batch", each.micro_batch);
    writer.field("accumulate", each.accumulate);
    writer.field("recompute", name_of(each.recompute));
    writer.field("step_time_s", *each.simulated_s);
    writer.field("estimated_step_time_s", each.estimated_s);
    writer.field("peak_bytes", each.peak_bytes);
    writer.end_object();
  }

  static std::string as_json(const sim::SearchResult& result) {
    JsonWriter writer;
    writer.begin_object();
    writer.field("schema_version", 1);
    writer.field("candidates", result.candidates);
    writer.field("feasible", result.feasible);
    writer.field("median_estimate_difference", result.median_difference);
    writer.begin_array("best");
    for (const sim::Candidate& each : result.best) {
      write_candidate(writer, each);
    }
    writer.end_array();
    writer.begin_object("rejected");
    for (const auto& [reason, count] : result.rejected) {
      writer.field(reason.c_str(), count);
    }
    writer.end_object();
    writer.end_object();
    return writer.text();
  }

  static std::string as_csv(const sim::SearchResult& result) {
    std::string text = "strategy,step_time_s,estimated_step_time_s,peak_bytes\n";
    for (const sim::Candidate& each : result.best) {
      text += fmt::format("{},{:.9g},{:.9g},{}\n",
                          csv_field(words(each)),
                          *each.simulated_s,
                          each.estimated_s,
                          each.peak_bytes);
    }
    return text;
  }
};

}  // namespace

void add_search_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<SearchCommand>();
  CLI::App* app = program.add_subcommand("search");
  app->description(kDescription);
  app->add_option("--devices", command->devices, "devices (default: all of the cluster)")
      ->check(CLI::Range(std::int64_t{1}, kMaxWorldSize));
  app->add_option("--top", command->top, "how many of the best are shown (default 20)")
      ->check(CLI::Range(1, 1000));
  app->add_option("--threads", command->threads, "worker threads (default: one per core)")
      ->check(CLI::Range(1, 256));
  CLI::Option* json = app->add_flag("--json", command->json, "one JSON object");
  app->add_flag("--csv", command->csv, "one line per layout")->excludes(json);
  app->add_flag("--strict", command->strict, "exit with 1 when no layout fits");
  command->flags.add_to(*app);
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
