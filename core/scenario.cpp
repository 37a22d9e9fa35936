#include "core/scenario.h"

#include <algorithm>

#include "core/error.h"
#include "core/legality.h"
#include "core/limits.h"

namespace lockstep {
namespace {

void resolve_batch(Scenario& scenario) {
  TrainingSpec& training = scenario.training;
  const std::int64_t per_pass =
      saturating_product({training.micro_batch, scenario.strategy.data.degree});
  const bool divides =
      training.micro_batch > 0 && per_pass > 0 && training.global_batch % per_pass == 0;
  if (training.global_batch > 0 && training.accumulate == 1 && divides) {
    training.accumulate = training.global_batch / per_pass;
  }
}

/// A preset is one node; a larger world asks for as many as it needs. A number of nodes that was
/// set (anything but 1) is never changed: too few are a problem, not a wish.
void resolve_nodes(Scenario& scenario) {
  ClusterSpec& cluster = scenario.cluster;
  const std::int64_t world = scenario.strategy.world_size();
  if (cluster.nodes == 1 && cluster.devices_per_node > 0 && world > cluster.devices_per_node &&
      world <= kMaxWorldSize) {
    cluster.nodes = (world + cluster.devices_per_node - 1) / cluster.devices_per_node;
  }
}

}  // namespace

Scenario resolved(Scenario scenario) {
  if (scenario.training.seq_len == 0) {
    const bool rows = scenario.model.family == ModelFamily::kMlp;
    scenario.training.seq_len = rows ? 1 : scenario.model.max_position;
  }
  resolve_batch(scenario);
  resolve_nodes(scenario);
  return scenario;
}

std::int64_t samples_per_step(const Scenario& scenario) {
  return saturating_product(
      {scenario.training.micro_batch, scenario.training.accumulate, scenario.strategy.data.degree});
}

Problems validate(const Scenario& scenario) {
  Problems problems;
  validate(scenario.model, problems);
  validate(scenario.cluster, problems);
  validate(scenario.training, problems);
  validate(scenario.strategy, problems);
  check_legality(scenario, problems);
  return problems;
}

void require_valid(const Scenario& scenario) {
  const Problems problems = validate(scenario);
  if (!problems.empty()) {
    throw BadInputError("scenario", problems.one_line());
  }
}

}  // namespace lockstep
