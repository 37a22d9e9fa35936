#include "core/memory_advice.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "core/memory_report.h"
#include "core/names.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostSingle = 3;
constexpr std::size_t kMostTogether = 6;

/// Turns one knob; false where it does not apply. Legality is checked afterwards.
using Turn = bool (*)(Scenario& scenario, std::string& flags);

struct Knob {
  Turn turn;
  const char* cost;
};

std::int64_t world_of(const Scenario& scenario) {
  return scenario.strategy.world_size();
}

/// Twice the passes of half the size, or of half the replicas: the global batch stays.
void double_accumulation(Scenario& scenario, std::string& flags) {
  scenario.training.accumulate *= 2;
  if (scenario.training.global_batch == 0) {
    flags += fmt::format(" --accumulate {}", scenario.training.accumulate);
  }
}

/// Doubles `degree` at the price of half the replicas; where they are odd, of twice the devices.
bool double_degree(Scenario& scenario, std::int64_t& degree, const char* flag, std::string& flags) {
  std::int64_t& replicas = scenario.strategy.data.degree;
  degree *= 2;
  flags = fmt::format("{} {}", flag, degree);
  if (replicas % 2 == 0 && scenario.strategy.data.replicate == 1) {
    replicas /= 2;
    flags += fmt::format(" --dp {}", replicas);
    double_accumulation(scenario, flags);
    return true;
  }
  const std::int64_t nodes = (world_of(scenario) + scenario.cluster.devices_per_node - 1) /
                             scenario.cluster.devices_per_node;
  scenario.cluster.nodes = std::max(scenario.cluster.nodes, nodes);
  return true;
}

bool set_kind(Scenario& scenario, DataKind kind, std::string& flags) {
  const DataKind now = scenario.strategy.data.kind;
  if (scenario.strategy.data.degree == 1 || now == DataKind::kHsdp || now >= kind) {
    return false;
  }
  scenario.strategy.data.kind = kind;
  flags = fmt::format("--strategy {}", name_of(kind));
  return true;
}

bool sequence_parallel(Scenario& scenario, std::string& flags) {
  TensorStrategy& tensor = scenario.strategy.tensor;
  if (tensor.degree == 1 || tensor.sequence_parallel) {
    return false;
  }
  tensor.sequence_parallel = true;
  flags = "--sequence-parallel";
  return true;
}

bool bucket_view(Scenario& scenario, std::string& flags) {
  DataStrategy& data = scenario.strategy.data;
  if (data.kind != DataKind::kDdp || data.degree == 1 || data.gradient_as_bucket_view) {
    return false;
  }
  data.gradient_as_bucket_view = true;
  flags = "--set strategy.data.gradient_as_bucket_view=true";
  return true;
}

bool flash_attention(Scenario& scenario, std::string& flags) {
  TrainingSpec& training = scenario.training;
  if (scenario.model.family != ModelFamily::kTransformer ||
      training.attention == AttentionKind::kFlash) {
    return false;
  }
  training.attention = AttentionKind::kFlash;
  flags = "--set training.attention=flash";
  return true;
}

bool selective_recompute(Scenario& scenario, std::string& flags) {
  TrainingSpec& training = scenario.training;
  if (training.attention == AttentionKind::kFlash || training.recompute != Recompute::kNone) {
    return false;
  }
  training.recompute = Recompute::kSelective;
  flags = "--recompute selective";
  return true;
}

bool half_micro_batch(Scenario& scenario, std::string& flags) {
  TrainingSpec& training = scenario.training;
  if (training.micro_batch % 2 != 0) {
    return false;
  }
  training.micro_batch /= 2;
  flags = fmt::format("--micro-batch {}", training.micro_batch);
  double_accumulation(scenario, flags);
  return true;
}

bool full_recompute(Scenario& scenario, std::string& flags) {
  TrainingSpec& training = scenario.training;
  if (training.recompute == Recompute::kFull && training.recompute_every == 1) {
    return false;
  }
  training.recompute = Recompute::kFull;
  training.recompute_every = 1;
  flags = "--recompute full";
  return true;
}

/// One device, or a few: shard over the whole node.
bool shard_over_node(Scenario& scenario, std::string& flags) {
  StrategySpec& strategy = scenario.strategy;
  const std::int64_t others = strategy.tensor.degree * strategy.pipeline.degree;
  const std::int64_t node = scenario.cluster.devices_per_node;
  if (node % others != 0 || world_of(scenario) >= node || scenario.training.global_batch > 0) {
    return false;
  }
  strategy.data.kind = DataKind::kFsdp;
  strategy.data.degree = node / others;
  flags = fmt::format("--strategy fsdp --dp {}", strategy.data.degree);
  return true;
}

bool more_tensor(Scenario& scenario, std::string& flags) {
  return double_degree(scenario, scenario.strategy.tensor.degree, "--tp", flags);
}

bool more_pipeline(Scenario& scenario, std::string& flags) {
  return double_degree(scenario, scenario.strategy.pipeline.degree, "--pp", flags);
}

bool small_optimizer(Scenario& scenario, std::string& flags) {
  if (scenario.training.optimizer != OptimizerKind::kAdamW) {
    return false;
  }
  scenario.training.optimizer = OptimizerKind::kAdamW8bit;
  flags = fmt::format("--optimizer {}", name_of(OptimizerKind::kAdamW8bit));
  return true;
}

bool narrow_precision(Scenario& scenario, std::string& flags) {
  TrainingSpec& training = scenario.training;
  if (training.precision == Precision::kBf16 || training.precision == Precision::kFp16) {
    return false;
  }
  training.precision = Precision::kBf16;
  flags = "--precision bf16";
  return true;
}

bool to_zero1(Scenario& scenario, std::string& flags) {
  return set_kind(scenario, DataKind::kZero1, flags);
}
bool to_zero2(Scenario& scenario, std::string& flags) {
  return set_kind(scenario, DataKind::kZero2, flags);
}
bool to_fsdp(Scenario& scenario, std::string& flags) {
  return set_kind(scenario, DataKind::kFsdp, flags);
}

/// In the order of cost: first what costs nothing, then communication, then computation, then
/// devices, last what changes the numbers of the training.
constexpr Knob kKnobs[] = {
    {bucket_view, "nothing: gradients lie in their buckets"},
    {sequence_parallel, "no more bytes: an all-reduce becomes a reduce-scatter and an all-gather"},
    {flash_attention, "nothing: attention scores are not kept"},
    {selective_recompute, "a few percent more computation: attention scores are computed twice"},
    {to_zero1, "as many bytes per step as ddp; updated parameters are gathered"},
    {to_zero2, "as zero1, with a reduction in every micro-batch"},
    {half_micro_batch, "smaller matrix products, twice the launches"},
    {to_fsdp, "half as many bytes again as ddp: parameters are gathered twice"},
    {full_recompute, "about a third more computation: each layer runs forward twice"},
    {more_tensor, "activations cross ranks in every layer"},
    {more_pipeline, "idle time at the start and end of each step"},
    {shard_over_node, "more devices; parameters are gathered twice a micro-batch"},
    {small_optimizer, "other numbers: optimizer moments in 8 bits"},
    {narrow_precision, "other numbers: 16-bit arithmetic with fp32 master weights"},
};

struct Tried {
  MemoryChange change;
  Scenario scenario;
};

std::vector<Tried> try_all(const Scenario& scenario) {
  std::vector<Tried> tried;
  for (const Knob& knob : kKnobs) {
    Tried next{{}, scenario};
    if (!knob.turn(next.scenario, next.change.flags) || !validate(next.scenario).empty()) {
      continue;
    }
    next.change.cost = knob.cost;
    next.change.peak_bytes = counted_peak_bytes(next.scenario);
    next.change.fits = next.change.peak_bytes <= scenario.cluster.device.memory_bytes;
    tried.push_back(std::move(next));
  }
  return tried;
}

bool lower(const Tried& a, const Tried& b) {
  return a.change.peak_bytes < b.change.peak_bytes;
}

/// Always the change that lowers the peak most, until it fits.
std::vector<MemoryChange> add_up(Scenario scenario, std::vector<Tried> tried) {
  std::vector<MemoryChange> changes;
  std::int64_t peak = counted_peak_bytes(scenario);
  while (!tried.empty() && changes.size() < kMostTogether) {
    const auto best = std::min_element(tried.begin(), tried.end(), lower);
    if (best->change.peak_bytes >= peak) {
      break;
    }
    peak = best->change.peak_bytes;
    changes.push_back(best->change);
    if (best->change.fits) {
      return changes;
    }
    scenario = best->scenario;
    tried = try_all(scenario);
  }
  return {};  // even all together are not enough
}

}  // namespace

MemoryAdvice memory_advice(const Scenario& scenario) {
  std::vector<Tried> tried = try_all(scenario);
  const std::int64_t now = counted_peak_bytes(scenario);
  std::erase_if(tried, [now](const Tried& it) { return it.change.peak_bytes >= now; });
  MemoryAdvice advice;
  for (const Tried& it : tried) {
    if (it.change.fits && advice.single.size() < kMostSingle) {
      advice.single.push_back(it.change);
    }
  }
  if (!advice.single.empty()) {
    return advice;
  }
  advice.together = add_up(scenario, tried);
  std::stable_sort(tried.begin(), tried.end(), lower);
  for (const Tried& it : std::span(tried).first(std::min(kMostSingle, tried.size()))) {
    advice.single.push_back(it.change);
  }
  return advice;
}

}  // namespace lockstep
