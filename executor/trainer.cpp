#include "executor/trainer.h"

#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "core/error.h"
#include "core/planner/planner.h"
#include "executor/learning_rate.h"

namespace lockstep::exec {
namespace {

/// A resumed run has its optimizer states from the start: they are filled before the first step.
Scenario as_run(Scenario scenario, bool resumes) {
  if (resumes) {
    scenario.training.optimizer_state = OptimizerStateCreation::kEager;
  }
  return scenario;
}

}  // namespace

std::string unsupported_reason(const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  if (training.precision != Precision::kFp32 && training.precision != Precision::kFp64) {
    return "the cpu has kernels for fp32 and fp64 only: add --precision fp32";
  }
  const DType stored = training.parameter_dtype();
  if (training.gradient_dtype.value_or(stored) != stored ||
      training.reduce_dtype.value_or(stored) != stored) {
    return "gradients are kept and sent in the parameters' type only: leave "
           "training.gradient_dtype and training.reduce_dtype null";
  }
  if (scenario.model.is_moe()) {
    return "mixtures of experts are simulated, not run: no kernels";
  }
  if (training.optimizer == OptimizerKind::kAdamW8bit) {
    return "8-bit AdamW is simulated, not run: no kernels";
  }
  return "";
}

// ---- host --------------------------------------------------------------------------------------

class Trainer::TrainHost final : public Host {
 public:
  TrainHost(const Scenario& scenario, const TrainingData& data, std::int64_t steps)
      : training_(scenario.training),
        steps_(steps),
        data_(data),
        order_({data.samples(false),
                static_cast<std::int32_t>(scenario.strategy.data.degree),
                false,
                true,
                static_cast<std::uint64_t>(scenario.training.seed),
                0}),
        evaluation_order_({data.samples(true),
                           static_cast<std::int32_t>(scenario.strategy.data.degree),
                           false,
                           false,
                           0,
                           0}) {}

  void load(const BatchRequest& request) override {
    const bool evaluates = request.place.section == SectionKind::kEvaluate;
    SampleOrder& order = evaluates ? evaluation_order_ : order_;
    const std::int64_t step = evaluates ? 0 : request.place.iteration;
    const std::int64_t first =
        (step * training_.accumulate + request.place.microbatch) * request.samples;
    for (std::int64_t replica = 0; replica < request.replicas; ++replica) {
      for (std::int64_t i = 0; i < request.samples; ++i) {
        const std::int64_t at = (replica * request.samples + i) * request.seq;
        const auto rank = static_cast<std::int32_t>(request.place.data_coordinate + replica);
        data_.copy(evaluates, order.sample(rank, first + i), {request.inputs, request.labels, at});
      }
    }
  }

  std::int64_t counted_labels(const LabelRequest& request) override {
    const bool evaluates = request.place.section == SectionKind::kEvaluate;
    SampleOrder& order = evaluates ? evaluation_order_ : order_;
    const std::int64_t samples = request.microbatches * request.samples;
    const std::int64_t first = evaluates ? 0 : request.place.iteration * samples;
    std::int64_t counted = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      const std::int64_t index = order.sample(request.place.data_coordinate, first + i);
      counted += data_.counted_labels(evaluates, index);
    }
    return counted;
  }

  double learning_rate(std::int64_t iteration) const override {
    return exec::learning_rate(training_, iteration, steps_);
  }

  void loss(const RunPlace&, double value) override {
    const std::lock_guard lock(mutex_);
    loss_ = value;
  }

  void shard(const Shard& shard) override {
    if (writer != nullptr) {
      writer->add(shard);
    } else if (resumed != nullptr) {
      resumed->fill(shard);
    }
  }

  void statistics(const RunningStatistics& statistics) override {
    if (writer != nullptr) {
      writer->add(statistics);
    } else if (resumed != nullptr) {
      resumed->fill(statistics);
    }
  }

  void commit(const RunPlace& place) override {
    if (writer != nullptr) {
      writer->finish(place.rank);
    }
  }

  bool first_values(std::int32_t parameter,
                    std::int64_t first,
                    std::int64_t n,
                    double* values) const override {
    return resumed != nullptr && resumed->read(0, parameter, first, n, values);
  }

  double last_loss() const { return loss_; }

  CheckpointWriter* writer = nullptr;   ///< while section `save` writes
  const Checkpoint* resumed = nullptr;  ///< until the run has started

 private:
  const TrainingSpec& training_;
  std::int64_t steps_;
  const TrainingData& data_;
  SampleOrder order_;
  SampleOrder evaluation_order_;
  std::mutex mutex_;
  double loss_ = 0;
};

// ---- run ---------------------------------------------------------------------------------------

Trainer::Trainer(const Scenario& scenario, TrainingData& data, const TrainOptions& options)
    : scenario_(as_run(scenario, !options.resume_from.empty())), options_(options) {
  const std::string reason = unsupported_reason(scenario_);
  if (!reason.empty()) {
    throw NotSupportedError("train", reason);
  }
  plan_ = make_plan(scenario_, {.evaluate = true, .save = true});
  host_ = std::make_unique<TrainHost>(scenario_, data, options_.steps);
  if (!options_.resume_from.empty()) {
    resumed_ = std::make_unique<Checkpoint>(*plan_.graph, options_.resume_from);
    host_->resumed = resumed_.get();
    first_ = resumed_->step();
  }
  job_ = std::make_unique<Job>(plan_, scenario_.training, *host_, options_.job);
  job_->run(*plan_.find(SectionKind::kInit), 0);
  if (resumed_ != nullptr) {
    job_->run(*plan_.find(SectionKind::kSave), first_);  // shards are filled, not written
    host_->resumed = nullptr;
    resumed_.reset();
  }
}

Trainer::~Trainer() = default;

StepMetrics Trainer::step(std::int64_t index) {
  const auto begin = std::chrono::steady_clock::now();
  job_->run(plan_.step(static_cast<int>(index - first_)), index);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  StepMetrics metrics;
  metrics.step = index + 1;
  metrics.loss = host_->last_loss();
  metrics.learning_rate = host_->learning_rate(index);
  metrics.seconds = wall.count();
  metrics.tokens_per_s = static_cast<double>(samples_per_step(scenario_)) *
                         static_cast<double>(scenario_.training.seq_len) / wall.count();
  for (int rank = 0; rank < job_->ranks(); ++rank) {
    metrics.peak_bytes = std::max(metrics.peak_bytes, job_->device(rank).memory().peak());
    job_->device(rank).memory().forget_events();
    for (const auto& communicator : job_->communicators(rank)) {
      if (communicator != nullptr) {
        communicator->forget_issued();
      }
    }
  }
  refuse_unless_finite("loss of", metrics.step, metrics.loss);
  return metrics;
}

/// Before anything of the step is kept: the newest checkpoint stays one to go on from.
void Trainer::refuse_unless_finite(const char* what, std::int64_t step, double loss) const {
  if (!std::isfinite(loss)) {
    throw CheckFailedError(
        "train",
        fmt::format("the {} step {} is {}: lower --set training.learning_rate (now {})",
                    what,
                    step,
                    loss,
                    scenario_.training.learning_rate));
  }
}

double Trainer::evaluate(std::int64_t index) {
  job_->run(*plan_.find(SectionKind::kEvaluate), index);
  refuse_unless_finite("evaluation loss after", index + 1, host_->last_loss());
  return host_->last_loss();
}

void Trainer::save(std::int64_t steps) {
  CheckpointWriter writer(*plan_.graph, options_.checkpoints, steps);
  host_->writer = &writer;
  job_->run(*plan_.find(SectionKind::kSave), steps);
  host_->writer = nullptr;
  writer.publish();
}

std::int64_t Trainer::run(const std::function<bool(const StepMetrics&)>& on_step) {
  const auto every = [](std::int64_t steps, std::int64_t interval) {
    return interval > 0 && steps % interval == 0;
  };
  std::int64_t done = first_;
  std::int64_t saved = first_;
  bool goes_on = true;
  while (goes_on && done < options_.steps) {
    StepMetrics metrics = step(done);
    ++done;
    const bool evaluates = every(done, options_.evaluate_every) || done == options_.steps;
    if (evaluates) {
      last_step_ = job_->trace_step();  // before the evaluation's spans replace the step's
      metrics.evaluation_loss = evaluate(done - 1);
    }
    goes_on = on_step(metrics);
    if (!goes_on && !evaluates) {
      last_step_ = job_->trace_step();
    }
    if (!options_.checkpoints.empty() && every(done, options_.checkpoint_every)) {
      save(done);
      saved = done;
    }
  }
  if (!options_.checkpoints.empty() && saved != done) {
    save(done);
  }
  return done;
}

}  // namespace lockstep::exec
