#include "tests/support/real_run.h"

#include <cmath>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
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

/// Labels of a sample that count, where samples are uneven: at least one.
std::int64_t counted(std::int64_t sample, std::int64_t seq) {
  return 1 + static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(sample) * 31 + 7) %
                                       static_cast<std::uint64_t>(seq));
}

constexpr std::int64_t kIgnored = -100;

}  // namespace

CounterHost::CounterHost(const Scenario& scenario, const Plan& plan, bool uneven)
    : scenario_(scenario),
      plan_(plan),
      uneven_(uneven),
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
  const std::int64_t first = first_sample(request.place, request.place.microbatch, request.samples);
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
          const bool counts = !uneven_ || t < counted(sample, request.seq);
          request.labels->as<std::int64_t>()[at] =
              counts ? token(sample, t + 1, vocabulary) : kIgnored;
        }
      }
    }
  }
}

std::int64_t CounterHost::first_sample(const exec::RunPlace& place,
                                       std::int64_t microbatch,
                                       std::int64_t samples) const {
  return (place.iteration * scenario_.training.accumulate + microbatch) * samples;
}

std::int64_t CounterHost::counted_labels(const exec::LabelRequest& request) {
  if (!uneven_) {
    return exec::Host::counted_labels(request);
  }
  const std::int64_t ranks = scenario_.strategy.data.degree;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < request.microbatches * request.samples; ++i) {
    const std::int64_t sample = (first_sample(request.place, 0, request.samples) + i) * ranks +
                                request.place.data_coordinate;
    sum += counted(sample, request.seq);
  }
  return sum;
}

void CounterHost::loss(const exec::RunPlace& place, double value) {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(place.iteration);
  if (result_.losses.size() <= at) {
    result_.losses.resize(at + 1);
    result_.losses[at] = value;
  }
  double& loss = result_.losses[at];
  loss = std::abs(loss - value) <= 1e-12 * std::abs(value) ? value : NAN;
}

void CounterHost::commit(const exec::RunPlace& place) {
  std::int64_t expected = 0;
  for (int rank = 0; rank < plan_.mesh.world_size(); ++rank) {
    const Section& save = *plan_.find(SectionKind::kSave);
    for (const Operation& op :
         save.programs[static_cast<std::size_t>(plan_.class_of_rank(rank))].operations) {
      expected += op.work == Work::kWriteShard ? 1 : 0;
    }
  }
  const std::lock_guard lock(mutex_);
  if (shards_ != expected) {
    throw CheckFailedError(
        "test", fmt::format("rank {} commits {} of {} shards", place.rank, shards_, expected));
  }
}

void CounterHost::shard(const exec::Shard& shard) {
  const std::lock_guard lock(mutex_);
  ++shards_;
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

void CounterHost::statistics(const exec::RunningStatistics&) {
  const std::lock_guard lock(mutex_);
  ++shards_;
}

namespace {

/// One rank's host: the shared one, but for first values and delays of its own.
class RankHost final : public exec::Host {
 public:
  RankHost(CounterHost& shared, const Plan& plan, int rank, const RunOptions& options)
      : shared_(shared), options_(options) {
    const bool last = rank == plan.mesh.world_size() - 1;
    late_ = last && options.late.count() > 0;
    receives_all_ = plan.mesh.index(kDataAxes, rank) > 0;
    receives_tied_ =
        plan.graph->model.tied_embeddings && plan.mesh.coordinate(rank, Axis::kPipeline) > 0;
  }

  void load(const exec::BatchRequest& request) override { shared_.load(request); }
  std::int64_t counted_labels(const exec::LabelRequest& request) override {
    return shared_.counted_labels(request);
  }
  double learning_rate(std::int64_t i) const override { return shared_.learning_rate(i); }
  void loss(const exec::RunPlace& place, double value) override { shared_.loss(place, value); }
  void commit(const exec::RunPlace& place) override { shared_.commit(place); }
  void shard(const exec::Shard& shard) override {
    if (std::exchange(late_, false)) {
      std::this_thread::sleep_for(options_.late);
    }
    shared_.shard(shard);
  }
  void statistics(const exec::RunningStatistics& statistics) override {
    shared_.statistics(statistics);
  }
  bool first_values(std::int32_t parameter,
                    std::int64_t first,
                    std::int64_t n,
                    double* values) const override {
    const bool distorts =
        options_.distorted && (receives_all_ || (receives_tied_ && parameter == 0));
    for (std::int64_t i = 0; distorts && i < n; ++i) {
      values[i] = 0.01 * static_cast<double>((first + i) % 7);
    }
    return distorts;
  }

 private:
  CounterHost& shared_;
  const RunOptions& options_;
  bool late_ = false;
  bool receives_all_ = false;
  bool receives_tied_ = false;
};

}  // namespace

RunResult run_plan(const Scenario& scenario,
                   const Plan& plan,
                   std::int64_t steps,
                   const RunOptions& options) {
  CounterHost host(scenario, plan, options.uneven);
  std::vector<std::unique_ptr<RankHost>> own;
  std::vector<exec::Host*> hosts;
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    own.push_back(std::make_unique<RankHost>(host, plan, rank, options));
    hosts.push_back(own.back().get());
  }
  exec::JobOptions settings;
  settings.device.poison = true;
  settings.local.timeout = options.timeout;
  exec::Job job(plan, scenario.training, hosts, settings);
  const auto run = [&](const Section& section, std::int64_t iteration) {
    const auto observe = [&] {
      if (options.after_section) {
        options.after_section(job, section);
      }
    };
    try {
      job.run(section, iteration);
    } catch (const Error&) {
      observe();
      throw;
    }
    observe();
  };
  run(*plan.find(SectionKind::kInit), 0);
  for (std::int64_t i = 0; i < steps; ++i) {
    run(plan.step(static_cast<int>(i)), i);
  }
  if (options.evaluate) {
    run(*plan.find(SectionKind::kEvaluate), steps);
  }
  run(*plan.find(SectionKind::kSave), steps);
  return host.result();
}

RunResult run_for_real(const Scenario& scenario, std::int64_t steps, const RunOptions& options) {
  const Plan plan = make_plan(scenario, {.evaluate = options.evaluate, .save = true});
  return run_plan(scenario, plan, steps, options);
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
