// RunFolder: what a training run leaves: scenario.json, metrics.jsonl, report.json, trace/,
// checkpoints/.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "core/scenario.h"
#include "executor/trainer.h"

namespace lockstep::cli {

class RunFolder {
 public:
  /// UsageError if it holds a run and `resume` is false, or holds none and it is true.
  RunFolder(std::filesystem::path path, bool resume);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path scenario_file() const { return path_ / "scenario.json"; }
  std::filesystem::path trace_file(std::int64_t step) const;

  /// Makes the folder with its scenario; keeps the metrics of the first `steps` steps and goes on
  /// behind them.
  void open(const Scenario& scenario, std::int64_t steps);
  void add_metrics(const exec::StepMetrics& metrics);
  void save_report(const std::string& json) const;

 private:
  void open_metrics(std::int64_t steps);

  std::filesystem::path path_;
  std::ofstream metrics_;
};

}  // namespace lockstep::cli
