// RunFolder: what a training run leaves: scenario.json, metrics.jsonl, report.json, trace/,
// checkpoints/.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "core/scenario.h"
#include "executor/trainer.h"

namespace lockstep::cli {

/// Flags that a resumed run goes on with.
struct RunSettings {
  std::string data;        ///< absolute path; empty = the built-in text
  bool documents = false;  ///< samples end with their document
  std::int64_t steps = 1000;
  std::int64_t checkpoint_every = 0;
  std::int64_t evaluate_every = 0;
};

class RunFolder {
 public:
  /// For a new run, or for one that goes on: UsageError if it holds a run with a checkpoint
  /// already, or holds none to go on with.
  RunFolder(std::filesystem::path path, bool resume);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  /// Lets another process use the folder.
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path scenario_file() const { return path_ / "scenario.json"; }
  std::filesystem::path trace_file(std::int64_t step) const;

  /// What the run was asked for beside its scenario, as it was saved.
  RunSettings settings() const;
  /// Makes the folder with scenario and settings; keeps the metrics of the first `steps` steps and
  /// goes on behind them. UsageError while another process trains there.
  void open(const Scenario& scenario, const RunSettings& settings, std::int64_t steps);
  void add_metrics(const exec::StepMetrics& metrics);
  void save_report(const std::string& json) const;

 private:
  void open_metrics(std::int64_t steps);
  void lock();
  bool is_locked() const;

  std::filesystem::path path_;
  int lock_ = -1;
  std::ofstream metrics_;
};

/// The trace of the last step that a run folder holds; any other path itself. BadInputError of
/// `component` for a folder without one.
std::string trace_file_of(const std::string& path, const char* component);

}  // namespace lockstep::cli
