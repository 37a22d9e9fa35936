// lockstep plan: the operations of a class of ranks, what they send, and whether the plan is right.
#include <algorithm>
#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/plan_listing.h"
#include "cli/scenario_flags.h"
#include "cli/scenario_text.h"
#include "core/check/plan_check.h"
#include "core/check/value_check.h"
#include "core/error.h"
#include "core/io/json_writer.h"
#include "core/names.h"
#include "core/plan_text.h"
#include "core/planner/planner.h"
#include "core/planner/schedule/action_csv.h"
#include "core/planner/schedule/unit_time.h"
#include "core/report_text.h"
#include "core/traffic.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "The operations of every rank in order, with what they send and hold.\n\n"
    "  lockstep plan --model mlp-tiny --strategy ddp --dp 2\n"
    "  lockstep plan --model gpt2-tiny --pp 4 --accumulate 8 --schedule zb-h1 --rank 3 --summary\n"
    "  lockstep plan --model gpt2-tiny --strategy fsdp --dp 4 --check\n";

/// The value check runs every rank over symbols: for plans of this size it takes a moment.
constexpr int kMostCheckedRanks = 64;
constexpr std::int64_t kMostCheckedOperations = 300'000;  ///< ranks x operations of a step

std::vector<std::string_view> section_names() {
  std::vector<std::string_view> names;
  for (const SectionKind kind :
       {SectionKind::kInit, SectionKind::kStep, SectionKind::kEvaluate, SectionKind::kSave}) {
    names.push_back(name_of(kind));
  }
  return names;
}

struct PlanCommand {
  ScenarioFlags flags;
  int rank = 0;
  int iteration = 0;  ///< 0: the step that repeats
  std::string section = "step";
  bool json = false;
  bool csv = false;
  bool summary = false;
  bool check = false;
  std::string pytorch_csv;

  int run() const {
    if (flags.lists_keys()) {
      print(ScenarioFlags::keys_text());
      return 0;
    }
    const Scenario scenario = flags.scenario();
    if (!pytorch_csv.empty()) {
      return print_actions(scenario);
    }
    Plan plan;
    {
      const Progress progress("planning");
      plan = make_plan(scenario);
    }
    if (rank < 0 || rank >= plan.mesh.world_size()) {
      throw UsageError(
          "flags",
          fmt::format(
              "--rank {} is not a rank: there are {}, from 0", rank, plan.mesh.world_size()));
    }
    if (check) {
      return run_checks(scenario, plan);
    }
    list(scenario, plan);
    return 0;
  }

 private:
  int section_index(const Plan& plan) const {
    const std::vector<std::string_view> names = section_names();
    if (std::find(names.begin(), names.end(), section) == names.end()) {
      throw UsageError("flags", "--section " + not_valid_message(section, names));
    }
    int found = -1;
    for (std::size_t i = 0; i < plan.sections.size(); ++i) {
      const Section& it = plan.sections[i];
      if (name_of(it.kind) != section) {
        continue;
      }
      const bool is_step = it.kind == SectionKind::kStep;
      // Without --iteration the last variant, which is the one that repeats.
      if (!is_step || iteration == 0 || &it == &plan.step(iteration - 1)) {
        found = static_cast<int>(i);
      }
    }
    return found;
  }

  /// Device bytes that the class holds when the section begins.
  static std::int64_t held_before(const Listing& listing) {
    std::int64_t held = 0;
    if (listing.plan.sections[static_cast<std::size_t>(listing.section)].kind ==
        SectionKind::kInit) {
      return 0;
    }
    // Step sections follow init and each other; evaluate and save follow the steps.
    for (int section = 0; section < listing.section; ++section) {
      const Section& it = listing.plan.sections[static_cast<std::size_t>(section)];
      if (it.kind != SectionKind::kInit && it.kind != SectionKind::kStep) {
        continue;
      }
      const Listing earlier{listing.plan, listing.class_index, section};
      for (const Operation& op : earlier.program().operations) {
        held = held_after(earlier, op, held);
      }
    }
    return held;
  }

  std::string head(const Scenario& scenario, const Listing& listing) const {
    const Plan& plan = listing.plan;
    const int count = plan.mesh.world_size() / plan.class_count();
    std::string text = scenario_line(scenario) + "\n";
    text += fmt::format("rank {}, section {}: {} operations; class {} of {}, {} rank{}\n",
                        rank,
                        section_text(plan, listing.section),
                        grouped(static_cast<std::int64_t>(listing.program().operations.size())),
                        listing.class_index,
                        plan.class_count(),
                        count,
                        count == 1 ? "" : "s");
    text += bubble_text(scenario);
    const std::vector<Traffic> all = traffic_of(plan, listing.program());
    if (all.empty()) {
      return text + "no messages\n\n";
    }
    TextTable table({{"group"},
                     {"kind"},
                     {"type"},
                     {"messages", Align::kRight},
                     {"bytes", Align::kRight},
                     {"sent by a rank (ring)", Align::kRight},
                     {""}});
    for (const Traffic& it : all) {
      table.add({it.group,
                 it.kind,
                 it.dtype,
                 grouped(it.messages),
                 bytes_text(it.bytes),
                 it.sent > 0 ? bytes_text(std::llround(it.sent)) : "-",
                 it.control ? "control" : ""});
    }
    return text + table.text("  ") + "\n";
  }

  static std::string bubble_text(const Scenario& scenario) {
    if (scenario.strategy.pipeline.degree == 1) {
      return "";
    }
    const UnitTime time = time_schedule(pipeline_schedule(scenario));
    return fmt::format(
        "pipeline bubble {:.2f} % when forward, input and weight gradient cost one unit each and "
        "messages nothing (step of {:g} units)\n",
        100 * time.bubble_fraction(),
        time.makespan());
  }

  void list(const Scenario& scenario, const Plan& plan) const {
    const Listing listing{plan, plan.class_of_rank(rank), section_index(plan)};
    const std::int64_t held = held_before(listing);
    Printer out;
    if (csv) {
      list_csv(listing, held, out);
    } else if (json) {
      print_json(listing, held, out);
    } else {
      out.add(head(scenario, listing));
      if (!summary) {
        list_text(listing, held, out);
      }
    }
    out.finish();
  }

  void print_json(const Listing& listing, std::int64_t held, Printer& out) const {
    const Plan& plan = listing.plan;
    std::vector<int> ranks;
    for (int other = 0; other < plan.mesh.world_size(); ++other) {
      if (plan.class_of_rank(other) == listing.class_index) {
        ranks.push_back(other);
      }
    }
    JsonWriter writer;
    writer.begin_object();
    writer.field("schema_version", 1);
    writer.field("rank", rank);
    writer.field("class", listing.class_index);
    writer.field("ranks_like_this", ranks);
    writer.field("section", section_text(plan, listing.section));
    writer.begin_array("messages");
    for (const Traffic& it : traffic_of(plan, listing.program())) {
      writer.begin_object();
      writer.field("group", it.group);
      writer.field("kind", it.kind);
      writer.field("dtype", it.dtype);
      writer.field("control", it.control);
      writer.field("messages", it.messages);
      writer.field("bytes", it.bytes);
      writer.field("sent_bytes_per_rank", it.sent);
      writer.end_object();
    }
    writer.end_array();
    // The operations are written one by one: the document is closed by hand.
    out.add(writer.take());
    out.add(",\n  \"operations\": [");
    list_json(listing, held, out);
    out.add("\n  ]\n}\n");
  }

  int print_actions(const Scenario& scenario) const {
    if (scenario.strategy.pipeline.degree == 1) {
      throw UsageError("flags", "--pytorch-csv is for pipelines: give --pp");
    }
    const Schedule schedule = pipeline_schedule(scenario);
    if (pytorch_csv == "compute_only") {
      print(write_action_csv(compute_only(schedule)));
    } else if (pytorch_csv == "compute_comms") {
      print(write_action_csv(schedule));
    } else {
      static constexpr std::string_view kFormats[] = {"compute_only", "compute_comms"};
      throw UsageError("flags", "--pytorch-csv " + not_valid_message(pytorch_csv, kFormats));
    }
    return 0;
  }

  /// One rank, one micro-batch, the same model and arithmetic: what the others must agree with.
  static Scenario one_rank(Scenario scenario) {
    scenario.strategy = StrategySpec{};
    scenario.training.accumulate = 1;
    scenario.training.global_batch = 0;
    scenario.training.clip_norm = 0;
    scenario.training.unused.clear();
    scenario.cluster.nodes = 1;
    return resolved(std::move(scenario));
  }

  static int run_checks(const Scenario& scenario, const Plan& plan) {
    const Progress progress("checking");
    const PlanProblems problems = check_plan(plan);
    if (!problems.empty()) {
      print(problems.text() + "\n");
      return static_cast<int>(ErrorKind::kCheckFailed);
    }
    std::string text = fmt::format(
        "structure, order, messages, lifetimes, races: no problems in {} "
        "operations\n",
        grouped(plan.operation_count()));
    std::int64_t longest = 0;
    for (const Section& section : plan.sections) {
      for (const Program& program : section.programs) {
        longest = std::max(longest, static_cast<std::int64_t>(program.operations.size()));
      }
    }
    const int world = plan.mesh.world_size();
    if (world > kMostCheckedRanks || longest * world > kMostCheckedOperations) {
      print(text + fmt::format("values: not checked, for plans of at most {} ranks and {} "
                               "operations over all ranks\n",
                               kMostCheckedRanks,
                               grouped(kMostCheckedOperations)));
      return 0;
    }
    const Plan reference = make_plan(one_rank(scenario));
    const ValueReport report = value_check(plan, reference);
    print(text + "values: " + report.text() + "\n");
    return report.ok() ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
  }
};

}  // namespace

void add_plan_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<PlanCommand>();
  CLI::App* app = program.add_subcommand("plan");
  app->description(kDescription);
  app->add_option("--rank", command->rank, "whose operations (default 0)");
  app->add_option("--section", command->section, "init|step|evaluate|save (default step)");
  app->add_option("--iteration", command->iteration, "step of this iteration, from 1")
      ->check(CLI::Range(1, 1'000'000));
  app->add_flag("--summary", command->summary, "without the list of operations");
  CLI::Option* json = app->add_flag("--json", command->json, "one JSON object");
  app->add_flag("--csv", command->csv, "one line per operation")->excludes(json);
  app->add_option("--pytorch-csv",
                  command->pytorch_csv,
                  "the pipeline's actions as PyTorch reads them: compute_only (default) or "
                  "compute_comms")
      ->expected(0, 1)
      ->default_str("compute_only");
  app->add_flag("--check", command->check, "prove the plan instead of printing it");
  command->flags.add_to(*app);
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
