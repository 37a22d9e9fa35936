// lockstep validate: predictions against published measurements.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "cli/validate_text.h"
#include "core/error.h"
#include "simulator/parallel.h"
#include "simulator/validate_collectives.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "Predicted against published step times, memory peaks and collectives.\n\n"
    "  lockstep validate\n"
    "  lockstep validate data/validation/train_throughput.csv --explain\n"
    "  lockstep validate data/validation/memory.csv --all --json\n\n"
    "Without a file: the tables that come with Lockstep. The columns of a file say what it is.\n";

constexpr const char* kComponent = "validate";

/// Where the tables are: beside an installed program, or where this one was built from.
std::filesystem::path data_folder() {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  for (const std::filesystem::path& folder :
       {program.parent_path().parent_path() / "share/lockstep/validation",
        std::filesystem::path(LOCKSTEP_VALIDATION_DATA)}) {
    if (std::filesystem::exists(folder / "hardware.csv", ignored)) {
      return folder;
    }
  }
  throw NotSupportedError(
      kComponent, "the tables of published measurements were neither installed nor built with");
}

CsvTable facts(const char* name) {
  return load_csv((data_folder() / name).string(), kComponent);
}

bool has_column(const CsvTable& table, std::string_view name) {
  return std::find(table.header.begin(), table.header.end(), name) != table.header.end();
}

void add_collectives(const CsvTable& table, sim::ValidationReport& report) {
  const sim::CollectiveTables tables{table, facts("hardware.csv"), facts("sites.csv")};
  for (const sim::CollectiveRow& row : sim::validate_collectives(tables)) {
    if (!row.refused.empty()) {
      report.refused.push_back({row.id, row.refused});
      continue;
    }
    report.rows.push_back({row.id,
                           row.source,
                           row.hardware,
                           sim::Metric::kCollectiveTime,
                           row.cost.seconds,
                           row.measured_s,
                           row.error(),
                           row.collective + ", " + std::string(name_of(row.regime)),
                           ""});
  }
}

struct ValidateCommand {
  std::vector<std::string> files;
  bool all = false;
  bool json = false;
  bool csv = false;
  bool explain = false;
  int threads = 0;

  int run() const {
    std::vector<std::string> paths = files;
    if (paths.empty()) {
      for (const char* name : {"train_throughput.csv", "memory.csv", "collectives.csv"}) {
        paths.push_back((data_folder() / name).string());
      }
    }
    sim::ValidationReport report;
    {
      const Progress progress("predicting published runs");
      for (const std::string& path : paths) {
        add(path, report);
      }
    }
    const ValidationView view{report, explain};
    print(json ? validation_json(view) : csv ? validation_csv(view) : validation_text(view));
    return 0;
  }

 private:
  void add(const std::string& path, sim::ValidationReport& report) const {
    const CsvTable table = load_csv(path, kComponent);
    if (has_column(table, "collective")) {
      return add_collectives(table, report);
    }
    const ValidationTable kind = kind_of(table);
    if (kind == ValidationTable::kOther) {
      table.refuse({1, {}},
                   "no table of runs: it has none of the columns metric_step_time_s, "
                   "measured_peak_gib, collective");
    }
    const sim::Machines machines{hardware_names(facts("hardware.csv")),
                                 site_networks(facts("sites.csv")),
                                 attention_kernels(facts("attention.csv")),
                                 eager_contexts(facts("contexts.csv"))};
    const std::vector<TrainingRow> rows = training_rows(table);
    sim::ValidationOptions options;
    options.all = all;
    options.threads = sim::thread_count(threads, rows.size());
    sim::ValidationReport part = sim::validate_rows(rows, kind, machines, options);
    std::move(part.rows.begin(), part.rows.end(), std::back_inserter(report.rows));
    std::move(part.refused.begin(), part.refused.end(), std::back_inserter(report.refused));
  }
};

}  // namespace

void add_validate_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<ValidateCommand>();
  CLI::App* app = program.add_subcommand("validate");
  app->description(kDescription);
  app->add_option("FILE", command->files, "tables of published measurements (CSV)");
  app->add_flag("--all", command->all, "predict also rows that the rule leaves out, marked");
  CLI::Option* json = app->add_flag("--json", command->json, "one JSON object");
  app->add_flag("--csv", command->csv, "one line per prediction")->excludes(json);
  app->add_flag("--explain", command->explain, "the rule, and every row that was refused");
  app->add_option("--threads", command->threads, "threads; 0 = one per core")
      ->check(CLI::Range(0, 1024));
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
