#include "cli/run_folder.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/scenario_io.h"
#include "executor/files.h"

namespace lockstep::cli {

RunFolder::RunFolder(std::filesystem::path path, bool resume) : path_(std::move(path)) {
  const bool holds_run = std::filesystem::exists(scenario_file());
  if (holds_run && !resume) {
    throw UsageError("train",
                     fmt::format("{} holds a run already: --resume goes on with it, --out DIR puts "
                                 "this one elsewhere",
                                 path_.string()));
  }
  if (!holds_run && resume) {
    throw UsageError("train", fmt::format("{} holds no run to resume", path_.string()));
  }
}

void RunFolder::open(const Scenario& scenario, std::int64_t steps) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) {
    throw UsageError("train",
                     fmt::format("{}: cannot be made: {}", path_.string(), error.message()));
  }
  exec::write_whole(scenario_file(), {scenario_text(scenario)});
  open_metrics(steps);
}

std::filesystem::path RunFolder::trace_file(std::int64_t step) const {
  std::filesystem::create_directories(path_ / "trace");
  return path_ / "trace" / fmt::format("step-{:08}.lstrace", step);
}

void RunFolder::open_metrics(std::int64_t steps) {
  const std::filesystem::path file = path_ / "metrics.jsonl";
  std::string kept;
  std::ifstream old(file);
  std::string line;
  for (std::int64_t i = 0; i < steps && std::getline(old, line); ++i) {
    kept += line + "\n";
  }
  old.close();
  exec::write_whole(file, {kept});
  metrics_.open(file, std::ios::app);
}

void RunFolder::add_metrics(const exec::StepMetrics& metrics) {
  metrics_ << fmt::format("{{\"step\": {}, \"loss\": {:.9g}, ", metrics.step, metrics.loss);
  if (metrics.evaluation_loss) {
    metrics_ << fmt::format("\"evaluation_loss\": {:.9g}, ", *metrics.evaluation_loss);
  }
  metrics_ << fmt::format(
                  "\"learning_rate\": {:.9g}, \"seconds\": {:.6f}, \"tokens_per_s\": {:.1f}, "
                  "\"peak_bytes\": {}}}\n",
                  metrics.learning_rate,
                  metrics.seconds,
                  metrics.tokens_per_s,
                  metrics.peak_bytes)
           << std::flush;
  if (!metrics_) {
    throw NotSupportedError(
        "train", fmt::format("{}: cannot be written", (path_ / "metrics.jsonl").string()));
  }
}

void RunFolder::save_report(const std::string& json) const {
  exec::write_whole(path_ / "report.json", {json});
}

}  // namespace lockstep::cli
