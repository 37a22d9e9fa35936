#include "cli/scenario_text.h"

#include <fmt/format.h>

#include "core/names.h"

namespace lockstep::cli {

std::string scenario_line(const Scenario& scenario) {
  const StrategySpec& strategy = scenario.strategy;
  const TrainingSpec& training = scenario.training;
  std::string text = fmt::format("{} on {} x {}: {}, dp {}",
                                 scenario.model.name,
                                 strategy.world_size(),
                                 scenario.cluster.device.name,
                                 name_of(strategy.data.kind),
                                 strategy.data.degree);
  if (strategy.data.kind == DataKind::kHsdp) {
    text += fmt::format(" ({} replicas)", strategy.data.replicate);
  }
  if (strategy.tensor.degree > 1) {
    text += fmt::format(
        ", tp {}{}", strategy.tensor.degree, strategy.tensor.sequence_parallel ? " + sp" : "");
  }
  if (strategy.pipeline.degree > 1) {
    text +=
        fmt::format(", pp {} {}",
                    strategy.pipeline.degree,
                    strategy.pipeline.actions_csv.empty() ? name_of(strategy.pipeline.schedule)
                                                          : std::string_view("schedule from file"));
    if (strategy.pipeline.chunks > 1) {
      text += fmt::format(" x {} chunks", strategy.pipeline.chunks);
    }
  }
  text += fmt::format(", {}, {}, recompute {}",
                      name_of(training.precision),
                      name_of(training.optimizer),
                      name_of(training.recompute));
  if (scenario.model.family == ModelFamily::kTransformer) {
    text += fmt::format(", seq {}", training.seq_len);
  }
  return text + fmt::format(", micro-batch {}, accumulate {}, global batch {}",
                            training.micro_batch,
                            training.accumulate,
                            samples_per_step(scenario));
}

std::string workload_line(const Scenario& scenario, std::int64_t devices) {
  return fmt::format("{} on {} x {}, {} samples of {} tokens a step",
                     scenario.model.name.empty() ? "model" : scenario.model.name,
                     devices,
                     scenario.cluster.device.name,
                     scenario.training.global_batch,
                     scenario.training.seq_len);
}

}  // namespace lockstep::cli
