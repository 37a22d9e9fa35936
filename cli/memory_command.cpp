// lockstep memory: the memory budget of a model under a strategy, rank by rank.
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/memory_text.h"
#include "cli/scenario_flags.h"
#include "core/error.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "Bytes of every rank at its peak, what they are, and whether they fit.\n\n"
    "  lockstep memory --model llama-3.1-8b --strategy fsdp --dp 8\n"
    "  lockstep memory --config config.json --strategy zero1 --dp 8 --tp 2 --explain\n"
    "  lockstep memory --scenario scenario.json --json --strict\n";

struct MemoryCommand {
  ScenarioFlags flags;
  bool json = false;
  bool csv = false;
  bool explain = false;
  bool advise = false;
  bool strict = false;

  int run() const {
    if (flags.lists_keys()) {
      print(ScenarioFlags::keys_text());
      return 0;
    }
    const Scenario scenario = flags.scenario();
    MemoryReport report;
    std::optional<MemoryAdvice> advice;
    {
      const Progress progress("counting bytes");
      report = memory_report(scenario, {.rows = explain});
      if (advise || !report.fits()) {
        advice = memory_advice(scenario);
      }
    }
    const MemoryView view{scenario, report, advice ? &*advice : nullptr, explain};
    print(json ? memory_json(view) : csv ? memory_csv(view) : memory_text(view, stdout_terminal()));
    return strict && !report.fits() ? static_cast<int>(ErrorKind::kCheckFailed) : 0;
  }
};

}  // namespace

void add_memory_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<MemoryCommand>();
  CLI::App* app = program.add_subcommand("memory");
  app->description(kDescription);
  CLI::Option* json = app->add_flag("--json", command->json, "one JSON object");
  app->add_flag("--csv", command->csv, "one line per rank class and category")->excludes(json);
  app->add_flag("--explain", command->explain, "every figure with its formula and source");
  app->add_flag(
      "--advise", command->advise, "smallest changes that lower the peak, also if it fits");
  app->add_flag("--strict", command->strict, "exit with 1 when it does not fit");
  command->flags.add_to(*app);
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
