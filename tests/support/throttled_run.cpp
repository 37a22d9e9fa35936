#include "tests/support/throttled_run.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "core/planner/planner.h"
#include "executor/calibrate.h"
#include "executor/trial_run.h"
#include "simulator/simulate.h"

namespace lockstep::test {
namespace {

constexpr std::int64_t kWidth = 256;
constexpr std::int64_t kLayers = 8;
constexpr double kGradientBytes = 4.0 * kLayers * (kWidth * kWidth + kWidth);

/// Equal layers, each a bucket if buckets are small: only the last one's transfer then has nothing
/// to hide behind. So many samples that the backward pass takes longer than all transfers.
Scenario equal_layers(double bucket_mib) {
  Scenario scenario;
  scenario.model = ModelSpec{};
  scenario.model.family = ModelFamily::kMlp;
  scenario.model.tied_embeddings = false;
  scenario.model.widths.assign(kLayers + 1, kWidth);
  scenario.training.seq_len = 1;
  scenario.training.micro_batch = 2048;
  scenario.training.precision = Precision::kFp32;
  scenario.training.optimizer = OptimizerKind::kSgd;
  scenario.strategy.data.kind = DataKind::kDdp;
  scenario.strategy.data.degree = 2;
  scenario.strategy.data.bucket_mib = bucket_mib;
  return resolved(scenario);
}

/// A ring's all-reduce among two ranks carries its whole size over each link.
exec::LinkLimit slow_link() {
  return {kGradientBytes / kThrottledTransferS, std::chrono::microseconds(100)};
}

/// Of the rank that hid most: the one that came last to the transfers. What others show more is the
/// time that it was not let run.
double exposed_of(const Report& report) {
  const auto least = std::min_element(
      report.ranks.begin(), report.ranks.end(), [](const RankReport& a, const RankReport& b) {
        return a.time.exposed_total() < b.time.exposed_total();
      });
  return static_cast<double>(least->time.exposed_total()) * 1e-9;
}

}  // namespace

/// A throttled transfer sleeps: it takes nothing from the kernels beside it.
ClusterSpec throttled_machine() {
  exec::CalibrateOptions options;
  options.seconds_each = 0.02;
  ClusterSpec cluster = exec::cluster_of(exec::calibrate(options), "for a throttled run");
  cluster.intra_node.bandwidth = slow_link().bytes_per_second;
  cluster.intra_node.latency_s = std::chrono::duration<double>(slow_link().latency).count();
  cluster.device.speed_beside_communication = 1;
  cluster.cores_per_node = 0;
  return cluster;
}

ThrottledRun::ThrottledRun(double bucket_mib, const ClusterSpec& cluster)
    : scenario_(equal_layers(bucket_mib)),
      plan_(make_plan(scenario_, {.evaluate = false, .save = false})) {
  const sim::Simulation simulation = sim::simulate(plan_, cluster);
  const Report report = make_report(plan_, simulation.trace, report_facts(scenario_));
  predicted_step_s = report.step_time_s();
  predicted_exposed_s = exposed_of(report);
}

void ThrottledRun::measure() {
  exec::TrialOptions options;
  options.warmup = 0;  // beside the steps before the buckets are what they remain
  options.steps = 2;
  options.job.local.link = slow_link();
  options.job.local.algorithm = exec::Algorithm::kRing;
  Trace trace;
  trace.source = TraceSource::kMeasured;
  trace.steps = exec::run_trial(scenario_, plan_, options).steps;
  for (int step = 0; step < options.steps; ++step) {
    const Report report = make_report(plan_, trace, report_facts(scenario_), step);
    step_s = std::min(step_s, report.step_time_s());
    exposed_s = std::min(exposed_s, exposed_of(report));
  }
}

std::string ThrottledRun::text() const {
  return fmt::format("step {:.1f} ms predicted, {:.1f} ms run; exposed {:.1f} and {:.1f} ms",
                     predicted_step_s * 1e3,
                     step_s * 1e3,
                     predicted_exposed_s * 1e3,
                     exposed_s * 1e3);
}

}  // namespace lockstep::test
