#include "visualizer/app/choices.h"

#include <algorithm>

#include "core/cluster_presets.h"
#include "core/model_presets.h"
#include "core/names.h"

namespace lockstep::app {
namespace {

constexpr int kMostTries = 24;
constexpr std::int64_t kUsualSequence = 4096;

std::int64_t step(const NumberField& field, std::int64_t value, int direction) {
  if (!field.doubles) {
    return value + direction;
  }
  std::int64_t power = 1;
  if (direction > 0) {
    while (power <= value) {
      power *= 2;
    }
    return power;
  }
  while (power * 2 < value) {
    power *= 2;
  }
  return value > 1 ? power : value - 1;
}

bool contains(const Problems& problems, const Problem& problem) {
  return std::any_of(problems.list().begin(), problems.list().end(), [&](const Problem& it) {
    return it.place == problem.place && it.message == problem.message;
  });
}

/// One choice per name of an enum; `set` puts it into a scenario.
template <typename Enum>
std::vector<Choice> enum_choices(Enum current, void (*set)(Scenario&, Enum)) {
  std::vector<Choice> choices;
  for (const std::string_view name : valid_names<Enum>()) {
    const Enum value = *parse_name<Enum>(name);
    choices.push_back(
        {std::string(name), [set, value](Scenario& s) { set(s, value); }, value == current});
  }
  return choices;
}

}  // namespace

std::string reason_against(const Scenario& scenario, const Change& change) {
  Scenario candidate = scenario;
  change(candidate);
  const Problems after = validate(resolved(std::move(candidate)));
  if (after.empty()) {
    return "";
  }
  const Problems before = validate(resolved(scenario));
  if (after.list().size() <= before.list().size() && !before.empty()) {
    return "";
  }
  for (const Problem& problem : after.list()) {
    if (!contains(before, problem)) {
      return problem.message;
    }
  }
  return after.list().front().message;
}

std::int64_t value_of(const NumberField& field, const Scenario& scenario) {
  Scenario copy = scenario;
  return field.number(copy);
}

void set(const NumberField& field, Scenario& scenario, std::int64_t value) {
  field.number(scenario) = std::clamp(value, field.low, field.high);
  if (field.also != nullptr) {
    field.also(scenario);
  }
}

Neighbour neighbour(const NumberField& field, const Scenario& scenario, int direction) {
  Neighbour result;
  // A file may hold any number; doubling up to it would never end.
  std::int64_t value = std::clamp(value_of(field, scenario), field.low - 1, field.high + 1);
  for (int i = 0; i < kMostTries; ++i) {
    value = step(field, value, direction);
    if (value < field.low || value > field.high) {
      break;
    }
    const std::string reason = reason_against(scenario, [&](Scenario& s) { set(field, s, value); });
    if (reason.empty()) {
      result.value = value;
      break;
    }
    if (result.reason.empty()) {
      result.reason = reason;
    }
  }
  return result;
}

std::vector<Choice> model_choices(const Scenario& scenario) {
  std::vector<Choice> choices;
  for (const ModelPreset& preset : model_presets()) {
    const ModelSpec& model = preset.model;
    choices.push_back({model.name,
                       [model](Scenario& s) {
                         s.model = model;
                         // A length that the other model allowed need not be one of this.
                         s.training.seq_len = std::min(model.max_position, kUsualSequence);
                         if (model.family == ModelFamily::kMlp) {
                           s.training.seq_len = 0;
                         }
                       },
                       model.name == scenario.model.name});
  }
  return choices;
}

std::vector<Choice> cluster_choices(const Scenario& scenario) {
  std::vector<Choice> choices;
  for (const ClusterPreset& preset : cluster_presets()) {
    const ClusterSpec& cluster = preset.cluster;
    choices.push_back({cluster.name,
                       [cluster](Scenario& s) { s.cluster = cluster; },
                       cluster.name == scenario.cluster.name});
  }
  return choices;
}

std::vector<Choice> data_kind_choices(const Scenario& scenario) {
  return enum_choices<DataKind>(scenario.strategy.data.kind, [](Scenario& s, DataKind kind) {
    s.strategy.data.kind = kind;
    if (kind != DataKind::kHsdp) {
      s.strategy.data.replicate = 1;
    }
  });
}

std::vector<Choice> schedule_choices(const Scenario& scenario) {
  return enum_choices<ScheduleKind>(
      scenario.strategy.pipeline.schedule,
      [](Scenario& s, ScheduleKind kind) { s.strategy.pipeline.schedule = kind; });
}

std::vector<Choice> precision_choices(const Scenario& scenario) {
  return enum_choices<Precision>(scenario.training.precision, [](Scenario& s, Precision precision) {
    s.training.precision = precision;
  });
}

std::vector<Choice> recompute_choices(const Scenario& scenario) {
  return enum_choices<Recompute>(scenario.training.recompute, [](Scenario& s, Recompute recompute) {
    s.training.recompute = recompute;
  });
}

std::vector<Choice> optimizer_choices(const Scenario& scenario) {
  return enum_choices<OptimizerKind>(
      scenario.training.optimizer,
      [](Scenario& s, OptimizerKind optimizer) { s.training.optimizer = optimizer; });
}

}  // namespace lockstep::app
