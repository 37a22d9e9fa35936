// Trainer: a training run: data in, steps, evaluations, checkpoints, metrics out. What it needs to
// know of a strategy is its plan.
//
//     Trainer trainer(scenario, data, {.steps = 200, .checkpoints = "run/checkpoints"});
//     trainer.run([](const StepMetrics& m) { print(m); return true; });
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "core/memory_report.h"
#include "core/plan.h"
#include "core/scenario.h"
#include "executor/checkpoint.h"
#include "executor/job.h"
#include "executor/training_data.h"

namespace lockstep::exec {

struct TrainOptions {
  std::int64_t steps = 100;           ///< in all, with those before a resume
  std::int64_t evaluate_every = 0;    ///< steps; 0 = only at the end
  std::int64_t checkpoint_every = 0;  ///< steps; 0 = only at the end
  std::filesystem::path checkpoints;  ///< folder; empty = none are written
  std::filesystem::path resume_from;  ///< a checkpoint's folder; empty = start anew
  JobOptions job;
};

struct StepMetrics {
  std::int64_t step = 0;                  ///< steps done, from 1
  double loss = 0;                        ///< mean over the step's samples, before its update
  std::optional<double> evaluation_loss;  ///< after the update
  double learning_rate = 0;
  double seconds = 0;           ///< of the step alone
  double tokens_per_s = 0;      ///< over all ranks
  std::int64_t peak_bytes = 0;  ///< most that a rank's device has lent
};

class Trainer {
 public:
  /// Makes the plan, starts the ranks and runs section `init`. NotSupportedError for what has no
  /// kernels, BadInputError for data or a checkpoint that does not fit.
  Trainer(const Scenario& scenario, TrainingData& data, const TrainOptions& options);
  ~Trainer();

  /// Trains to the last step, or until `on_step` returns false; then saves (where there is a folder
  /// for checkpoints). Returns the steps done. CheckFailedError for a loss that is not finite.
  std::int64_t run(const std::function<bool(const StepMetrics&)>& on_step);

  /// As it runs: the one that the plan was made from.
  const Scenario& scenario() const { return scenario_; }
  const Plan& plan() const { return plan_; }
  std::int64_t first_step() const { return first_; }
  const Job& job() const { return *job_; }
  /// The last steady step.
  const std::optional<TraceStep>& last_step() const { return last_step_; }

 private:
  class TrainHost;

  StepMetrics step(std::int64_t index);
  double evaluate(std::int64_t index);
  void refuse_unless_finite(const char* what, std::int64_t step, double loss) const;
  void save(std::int64_t steps);

  Scenario scenario_;
  TrainOptions options_;
  Plan plan_;
  std::unique_ptr<Checkpoint> resumed_;
  std::unique_ptr<TrainHost> host_;
  std::unique_ptr<Job> job_;
  std::int64_t first_ = 0;  ///< steps that a checkpoint has done
  std::optional<TraceStep> last_step_;
};

/// What cannot be run here, in words, or "" (mixtures of experts, 16-bit storage, ...).
std::string unsupported_reason(const Scenario& scenario);

}  // namespace lockstep::exec
