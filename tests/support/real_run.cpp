#include "tests/support/real_run.h"

#include <cmath>

#include "core/parameter_map.h"
#include "core/planner/planner.h"

namespace lockstep::test {
namespace {

/// SplitMix64: a number from a counter.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

std::int64_t token(std::int64_t sample, std::int64_t position, std::int64_t vocabulary) {
  const auto counter = static_cast<std::uint64_t>(sample * 1'000'003 + position);
  return static_cast<std::int64_t>(mixed(counter) % static_cast<std::uint64_t>(vocabulary));
}

}  // namespace

CounterHost::CounterHost(const Scenario& scenario, const Plan& plan)
    : scenario_(scenario),
      plan_(plan),
      rate_(scenario.training.optimizer == OptimizerKind::kAdamW ? 1e-3 : 0.1) {}

void CounterHost::features(const exec::Operand& to, std::int64_t at, std::int64_t sample) const {
  const std::int64_t width = scenario_.model.widths.front();
  for (std::int64_t i = 0; i < width; ++i) {
    const double value =
        static_cast<double>(mixed(static_cast<std::uint64_t>(sample * 9176 + i)) >> 11U) * 0x1p-52 -
        1;
    if (to.dtype == DType::kFp64) {
      to.as<double>()[at * width + i] = value;
    } else {
      to.as<float>()[at * width + i] = static_cast<float>(value);
    }
  }
}

void CounterHost::load(const exec::BatchRequest& request) {
  const std::int64_t ranks = scenario_.strategy.data.degree;
  const std::int64_t vocabulary = scenario_.model.family == ModelFamily::kMlp
                                      ? scenario_.model.widths.back()
                                      : scenario_.model.vocab;
  const std::int64_t first =
      (request.place.iteration * scenario_.training.accumulate + request.place.microbatch) *
      request.samples;
  for (std::int64_t replica = 0; replica < request.replicas; ++replica) {
    for (std::int64_t i = 0; i < request.samples; ++i) {
      const std::int64_t sample = (first + i) * ranks + request.place.data_coordinate + replica;
      for (std::int64_t t = 0; t < request.seq; ++t) {
        const std::int64_t at = (replica * request.samples + i) * request.seq + t;
        if (request.inputs != nullptr && scenario_.model.family == ModelFamily::kMlp) {
          features(*request.inputs, at, sample * request.seq + t);
        } else if (request.inputs != nullptr) {
          request.inputs->as<std::int64_t>()[at] = token(sample, t, vocabulary);
        }
        if (request.labels != nullptr) {
          request.labels->as<std::int64_t>()[at] = token(sample, t + 1, vocabulary);
        }
      }
    }
  }
}

void CounterHost::loss(const exec::RunPlace& place, double value) {
  const std::lock_guard lock(mutex_);
  result_.losses.resize(
      std::max(result_.losses.size(), static_cast<std::size_t>(place.iteration) + 1));
  result_.losses[static_cast<std::size_t>(place.iteration)] = value;
}

void CounterHost::shard(const exec::Shard& shard) {
  const std::lock_guard lock(mutex_);
  const exec::Operand& from = shard.parts.front();
  for_each_piece(shard.layout, shard.coordinate, [&](const LayoutPiece& piece) {
    const ParameterDef& parameter = plan_.graph->parameter(piece.parameter);
    std::vector<double>& whole = result_.parameters[plan_.graph->parameter_name(piece.parameter)];
    whole.resize(static_cast<std::size_t>(parameter.rows * parameter.columns), NAN);
    const ParameterMap map(parameter, shard.tensor_degree, shard.tensor_coordinate);
    map.for_each_run(piece.first, piece.elements, [&](const ParameterRun& run) {
      for (std::int64_t i = 0; i < run.elements; ++i) {
        const std::int64_t at = piece.offset + run.local - piece.first + i;
        whole[static_cast<std::size_t>(run.logical + i)] =
            from.dtype == DType::kFp64 ? from.as<double>()[at]
                                       : static_cast<double>(from.as<float>()[at]);
      }
    });
  });
}

RunResult run_plan(const Scenario& scenario, const Plan& plan, std::int64_t steps) {
  CounterHost host(scenario, plan);
  exec::JobOptions options;
  options.device.poison = true;
  options.local.timeout = std::chrono::seconds(20);
  exec::Job job(plan, scenario.training, host, options);
  job.run(*plan.find(SectionKind::kInit), 0);
  for (std::int64_t i = 0; i < steps; ++i) {
    job.run(plan.step(static_cast<int>(i)), i);
  }
  job.run(*plan.find(SectionKind::kSave), steps);
  return host.result();
}

RunResult run_for_real(const Scenario& scenario, std::int64_t steps) {
  return run_plan(scenario, make_plan(scenario, {.evaluate = false, .save = true}), steps);
}

Scenario on_one_rank(const Scenario& scenario) {
  Scenario one = scenario;
  one.strategy = StrategySpec{};
  one.training.micro_batch = scenario.training.micro_batch * scenario.strategy.data.degree;
  one.training.global_batch = 0;
  one.training.recompute = Recompute::kNone;
  one.cluster.nodes = 1;
  return resolved(one);
}

Difference difference(const RunResult& a, const RunResult& b) {
  Difference worst;
  for (const auto& [name, values] : a.parameters) {
    const auto found = b.parameters.find(name);
    if (found == b.parameters.end() || found->second.size() != values.size()) {
      return {INFINITY, name + " is missing", INFINITY};
    }
    double maximum = 0;
    double largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      maximum = std::max(maximum, std::abs(values[i]));
      const double apart = std::abs(values[i] - found->second[i]);
      largest = apart >= largest || std::isnan(apart) ? apart : largest;
    }
    if (!(largest / std::max(1.0, maximum) <= worst.relative)) {
      worst.relative = largest / std::max(1.0, maximum);
      worst.tensor = name;
    }
    const double last_place = std::ldexp(1.0, std::max(std::ilogb(maximum), -126) - 23);
    worst.ulps = largest / last_place <= worst.ulps ? worst.ulps : largest / last_place;
  }
  return worst;
}

}  // namespace lockstep::test
