// Real runs of small scenarios for tests: batches from a counter, so that the same samples make up
// a step however many ranks share it, and whole parameters put together from the ranks' shards.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/scenario.h"
#include "executor/job.h"

namespace lockstep::test {

/// Parameters by name, whole, and the losses of the steps (NaN where ranks see different ones).
struct RunResult {
  std::map<std::string, std::vector<double>> parameters;
  std::vector<double> losses;
  bool operator==(const RunResult&) const = default;
};

/// The samples of a step are numbers [step * global, (step + 1) * global), dealt to data-parallel
/// ranks in turn, as a distributed sampler does without shuffling.
class CounterHost : public exec::Host {
 public:
  /// `uneven`: of every sample only the first labels count, of another number each; the rest is
  /// -100.
  CounterHost(const Scenario& scenario, const Plan& plan, bool uneven = false);

  void load(const exec::BatchRequest& request) override;
  std::int64_t counted_labels(const exec::LabelRequest& request) override;
  double learning_rate(std::int64_t) const override { return rate_; }
  void loss(const exec::RunPlace& place, double value) override;
  void shard(const exec::Shard& shard) override;
  void statistics(const exec::RunningStatistics& statistics) override;
  /// By the host's contract all ranks have shown their shards.
  void commit(const exec::RunPlace& place) override;

  RunResult result() const { return result_; }

 private:
  void features(const exec::Operand& to, std::int64_t at, std::int64_t sample) const;

  std::int64_t first_sample(const exec::RunPlace& place,
                            std::int64_t microbatch,
                            std::int64_t samples) const;

  const Scenario& scenario_;
  const Plan& plan_;
  bool uneven_;
  double rate_;
  std::mutex mutex_;
  RunResult result_;
  std::int64_t shards_ = 0;  ///< shown so far
};

struct RunOptions {
  std::chrono::nanoseconds timeout = std::chrono::seconds(20);
  bool evaluate = false;  ///< after the steps; its loss is the last one
  bool uneven = false;    ///< samples have different numbers of labels that count
  /// Ranks that are to receive their first values from others begin with values of their own.
  bool distorted = false;
  std::chrono::nanoseconds late = {};  ///< the last rank's delay before it shows its first shard
  /// Called when all ranks have ended a section, also when it failed.
  std::function<void(exec::Job&, const Section&)> after_section = {};
};

/// Init, `steps` steps and save of the resolved scenario.
RunResult run_for_real(const Scenario& scenario,
                       std::int64_t steps,
                       const RunOptions& options = {});
/// The same for a plan that was made (or changed) elsewhere.
RunResult run_plan(const Scenario& scenario,
                   const Plan& plan,
                   std::int64_t steps,
                   const RunOptions& options = {});

/// The same samples a step on one rank, one micro-batch after another.
Scenario on_one_rank(const Scenario& scenario);

/// Of the tensor where |a - b| / max(1, max|a|) is largest: that figure and the tensor's name. And
/// the most of all tensors in units of the last place of fp32 at the tensor's maximum.
struct Difference {
  double relative = 0;
  std::string tensor;
  double ulps = 0;
};
Difference difference(const RunResult& a, const RunResult& b);

}  // namespace lockstep::test
