#include "core/strategy_words.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/scenario_io.h"
#include "core/names.h"

namespace lockstep {
namespace {

struct ShortName {
  std::string_view word;
  std::string_view key;
};
constexpr ShortName kShortNames[] = {
    {"dp", "strategy.data.degree"},
    {"replicate", "strategy.data.replicate"},
    {"flavour", "strategy.data.flavour"},
    {"reshard", "strategy.data.reshard"},
    {"tp", "strategy.tensor.degree"},
    {"pp", "strategy.pipeline.degree"},
    {"schedule", "strategy.pipeline.schedule"},
    {"chunks", "strategy.pipeline.chunks"},
    {"micro-batch", "training.micro_batch"},
    {"recompute", "training.recompute"},
    {"precision", "training.precision"},
};

std::string_view key_of(std::string_view word) {
  for (const ShortName& name : kShortNames) {
    if (name.word == word) {
      return name.key;
    }
  }
  return word;
}

bool is_data_kind(std::string_view word) {
  static constexpr std::string_view kKinds[] = {
      "dp", "ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"};
  return std::find(std::begin(kKinds), std::end(kKinds), word) != std::end(kKinds);
}

std::vector<std::string_view> split(std::string_view words) {
  std::vector<std::string_view> found;
  while (!words.empty()) {
    const std::size_t comma = std::min(words.find(','), words.size());
    if (comma > 0) {
      found.push_back(words.substr(0, comma));
    }
    words.remove_prefix(std::min(comma + 1, words.size()));
  }
  return found;
}

}  // namespace

Scenario with_strategy(const Scenario& base, std::string_view words, std::int64_t devices) {
  Scenario scenario = base;
  scenario.strategy = StrategySpec{};
  scenario.training.accumulate = 1;  // follows from the global batch
  bool degree_given = false;
  for (const std::string_view word : split(words)) {
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos) {
      const std::string_view key = key_of(word.substr(0, equals));
      set_key(scenario, key, word.substr(equals + 1));
      degree_given |= key == "strategy.data.degree";
    } else if (word == "sp") {
      scenario.strategy.tensor.sequence_parallel = true;
    } else if (is_data_kind(word)) {
      set_key(scenario, "strategy.data.kind", word);
    } else {
      throw UsageError("flags",
                       fmt::format("strategy \"{}\": {} is neither a data-parallel kind, nor sp, "
                                   "nor KEY=VALUE",
                                   words,
                                   printable(word, 40)));
    }
  }
  const std::int64_t model_parallel =
      saturating_product({scenario.strategy.tensor.degree, scenario.strategy.pipeline.degree});
  if (!degree_given && model_parallel > 0) {
    scenario.strategy.data.degree = std::max<std::int64_t>(1, devices / model_parallel);
  }
  return resolved(std::move(scenario));
}

Scenario with_shared_batch(Scenario base, std::int64_t devices) {
  if (base.training.global_batch == 0) {
    base.training.global_batch = base.training.accumulate > 1 || base.strategy.world_size() > 1
                                     ? samples_per_step(base)
                                     : 4 * devices * base.training.micro_batch;
  }
  return base;
}

std::vector<std::string> usual_strategies(const Scenario& base, std::int64_t devices) {
  if (devices == 1) {
    return {"ddp"};
  }
  std::vector<std::string> list{"ddp", "zero1", "zero2", "zero3", "fsdp"};
  const ModelSpec& model = base.model;
  if (model.family != ModelFamily::kTransformer) {
    return list;
  }
  const auto fits = [&](std::int64_t tensor) {
    return tensor <= std::min<std::int64_t>(base.cluster.devices_per_node, 8) &&
           devices % tensor == 0 && model.heads % tensor == 0 && model.kv_heads % tensor == 0;
  };
  std::int64_t tensor = 1;
  while (fits(tensor * 2)) {
    tensor *= 2;
  }
  if (tensor > 1) {
    list.push_back(fmt::format("zero1,tp={},sp", tensor));
  }
  std::int64_t stages = 1;
  while (stages < 4 && devices % (stages * 2) == 0 && model.layers >= stages * 2) {
    stages *= 2;
  }
  if (stages > 1) {
    list.push_back(fmt::format("zero1,pp={}", stages));
  }
  if (fits(2) && devices % 4 == 0 && model.layers >= 2) {
    list.emplace_back("zero1,tp=2,sp,pp=2");
  }
  return list;
}

}  // namespace lockstep
