#include "cli/scenario_flags.h"

#include <algorithm>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "core/cluster_presets.h"
#include "core/error.h"
#include "core/io/cluster_io.h"
#include "core/io/json_reader.h"
#include "core/io/scenario_io.h"
#include "core/planner/schedule/action_csv.h"
#include "core/report_text.h"

namespace lockstep::cli {
namespace {

constexpr const char* kComponent = "flags";

struct FlagRow {
  const char* flag;
  const char* key;
  const char* help;
};

/// Flags that set one key to the text that follows them.
constexpr FlagRow kFlags[] = {
    {"--seq-len", "training.seq_len", "tokens per sample (default: the model's, at most 8192)"},
    {"--micro-batch", "training.micro_batch", "samples per rank and micro-batch (default 1)"},
    {"--global-batch", "training.global_batch", "samples per step over all ranks"},
    {"--accumulate", "training.accumulate", "micro-batches per step and rank (default 1)"},
    {"--nodes", "cluster.nodes", "number of nodes (default: as many as the ranks need)"},
    {"--precision", "training.precision", "fp64|fp32|tf32|bf16|fp16|autocast (default bf16)"},
    {"--optimizer", "training.optimizer", "sgd|momentum|adamw|adamw8bit (default adamw)"},
    {"--recompute", "training.recompute", "none|selective|full (default none)"},
    {"--strategy", "strategy.data.kind", "dp|ddp|zero1|zero2|zero3|fsdp|hsdp (default ddp)"},
    {"--dp", "strategy.data.degree", "data-parallel ranks: replicas x shards (default 1)"},
    {"--tp", "strategy.tensor.degree", "ranks that split each matrix (default 1)"},
    {"--pp", "strategy.pipeline.degree", "ranks that split the layers (default 1)"},
    {"--schedule",
     "strategy.pipeline.schedule",
     "gpipe|1f1b|interleaved|looped-bfs|zb-h1|interleaved-zb|zbv (default 1f1b)"},
    {"--chunks", "strategy.pipeline.chunks", "virtual stages per pipeline rank (default 1)"},
    {"--seed", "training.seed", "of initial weights, data and dropout"},
};

/// A file where it looks like one; anything else is taken for the name of a preset.
bool is_file_name(const std::string& text) {
  return !find_cluster_preset(text) && (text.find('/') != std::string::npos ||
                                        text.ends_with(".json") || std::filesystem::exists(text));
}

}  // namespace

const ScenarioFlags::Given* ScenarioFlags::given(const char* key) const {
  const auto found = std::find_if(given_.begin(), given_.end(), [key](const Given& it) {
    return std::string_view(it.key) == key;
  });
  return found == given_.end() ? nullptr : &*found;
}

bool ScenarioFlags::sets(const char* key) const {
  const Given* flag = given(key);
  const std::string prefix = std::string(key) + "=";
  return (flag != nullptr && flag->value) ||
         std::any_of(set_.begin(), set_.end(), [&prefix](const std::string& text) {
           return text.rfind(prefix, 0) == 0;
         });
}

bool ScenarioFlags::names_anything() const {
  return !file_.empty() || !model_.empty() || !config_.empty() || !cluster_.empty() ||
         !actions_file_.empty() || sequence_parallel_ || !set_.empty() ||
         std::any_of(given_.begin(), given_.end(), [](const Given& flag) {
           return flag.value.has_value();
         });
}

bool ScenarioFlags::names_strategy() const {
  constexpr std::string_view kPrefix = "strategy.";
  const auto of_strategy = [&](std::string_view key) { return key.rfind(kPrefix, 0) == 0; };
  return !file_.empty() || !actions_file_.empty() || sequence_parallel_ ||
         std::any_of(given_.begin(),
                     given_.end(),
                     [&](const Given& flag) { return flag.value && of_strategy(flag.key); }) ||
         std::any_of(set_.begin(), set_.end(), of_strategy);
}

void ScenarioFlags::add_to(CLI::App& command) {
  const char* group = "Scenario";
  // Given twice, the last counts: people append flags to a command that they have.
  const auto add = [&](const char* flag, auto& value, const char* help) {
    return command.add_option(flag, value, help)->group(group)->take_last();
  };
  add("--scenario", file_, "scenario.json to start from");
  CLI::Option* model = add("--model", model_, "preset; `lockstep models` lists them");
  add("--config", config_, "Hugging Face config.json")->excludes(model);
  add("--cluster", cluster_, "preset or file (default dgx-h100); `lockstep clusters` lists them");
  given_.reserve(std::size(kFlags));
  for (const FlagRow& row : kFlags) {
    given_.push_back({row.flag, row.key, std::nullopt});
    add(row.flag, given_.back().value, row.help);
  }
  command.get_option("--accumulate")->excludes(command.get_option("--global-batch"));
  command
      .add_flag("--sequence-parallel",
                sequence_parallel_,
                "shard activations between the matrices of tensor parallelism")
      ->group(group);
  add("--schedule-csv", actions_file_, "PyTorch pipeline action CSV that replaces the schedule");
  command.add_option("--set", set_, "KEY=VALUE for any key of the scenario; may be repeated")
      ->group(group)
      ->allow_extra_args(false);
  command.add_flag("--list-keys", list_keys_, "list every key that --set reaches and end")
      ->group(group);
}

void ScenarioFlags::apply_model(Scenario& scenario) const {
  if (!model_.empty()) {
    set_key(scenario, "model", model_);
  }
  if (!config_.empty()) {
    set_key(scenario, "model.config", config_);
  }
}

void ScenarioFlags::apply_cluster(Scenario& scenario, bool has_base) const {
  if (cluster_.empty()) {
    if (file_.empty() && !has_base) {
      set_key(scenario, "cluster", kDefaultCluster);
    }
  } else if (is_file_name(cluster_)) {
    scenario.cluster = load_cluster(cluster_);
  } else {
    set_key(scenario, "cluster", cluster_);
  }
}

void ScenarioFlags::apply_values(Scenario& scenario, std::int64_t default_sequence) const {
  // One of the two says it all; the other, from a file, would contradict.
  if (sets("training.global_batch") && !sets("training.accumulate")) {
    scenario.training.accumulate = 1;
  }
  if (sets("training.accumulate") && !sets("training.global_batch")) {
    scenario.training.global_batch = 0;
  }
  for (const Given& flag : given_) {
    if (flag.value) {
      set_key(scenario, flag.key, *flag.value);
    }
  }
  if (sequence_parallel_) {
    scenario.strategy.tensor.sequence_parallel = true;
  }
  for (const std::string& text : set_) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(kComponent, fmt::format("--set {} is not KEY=VALUE", text));
    }
    set_key(scenario, text.substr(0, equals), text.substr(equals + 1));
  }
  if (file_.empty() && !sets("training.seq_len")) {
    const bool transformer = scenario.model.family == ModelFamily::kTransformer;
    // 0: what the model says, a row without a sequence.
    scenario.training.seq_len =
        transformer ? std::min(scenario.model.max_position, default_sequence) : 0;
  }
}

/// The file says how many ranks, chunks and micro-batches it is for.
void ScenarioFlags::apply_actions(Scenario& scenario) const {
  if (actions_file_.empty()) {
    return;
  }
  std::string text = read_text_file(actions_file_, "schedule");
  const Schedule schedule = read_action_csv(text, actions_file_);
  PipelineStrategy& pipeline = scenario.strategy.pipeline;
  if (!sets("strategy.pipeline.degree")) {
    pipeline.degree = schedule.pipeline_degree;
  }
  if (!sets("strategy.pipeline.chunks")) {
    pipeline.chunks = schedule.chunks;
  }
  if (!sets("training.accumulate") && !sets("training.global_batch")) {
    scenario.training.accumulate = schedule.microbatches;
  }
  pipeline.actions_csv = std::move(text);
}

Scenario ScenarioFlags::scenario(const Scenario* base) const {
  Scenario scenario;
  if (!file_.empty()) {
    scenario = load_scenario(file_);
  } else if (base != nullptr) {
    scenario = *base;
  } else if (model_.empty() && config_.empty() && !sets("model")) {
    throw UsageError(kComponent, "no model: give --model, --config or --scenario");
  }
  apply_model(scenario);
  apply_cluster(scenario, base != nullptr);
  apply_values(scenario, base != nullptr ? base->training.seq_len : kDefaultSequence);
  apply_actions(scenario);
  const std::int64_t nodes = scenario.cluster.nodes;
  scenario = resolved(std::move(scenario));
  if (sets("cluster.nodes")) {
    scenario.cluster.nodes = nodes;  // 1 is an answer too, not only "as many as it takes"
  }
  const bool only_flags = file_.empty() && config_.empty() && actions_file_.empty() &&
                          (cluster_.empty() || !is_file_name(cluster_));
  const Problems problems = validate(scenario);
  if (!problems.empty() && only_flags) {
    throw UsageError("scenario", problems.one_line());
  }
  if (!problems.empty()) {
    throw BadInputError("scenario", (file_.empty() ? "" : file_ + ": ") + problems.one_line());
  }
  return scenario;
}

std::string ScenarioFlags::keys_text() {
  TextTable table({{"key"}, {"type"}, {"legal"}, {"default"}, {"meaning"}});
  for (const KeyInfo& info : scenario_keys()) {
    table.add({info.key, info.type, info.legal, info.default_value, info.help});
  }
  return table.text() +
         fmt::format(
             "\nDefaults of a scenario file. Flags begin with {} and at most {} tokens a sample.\n",
             kDefaultCluster,
             kDefaultSequence);
}

}  // namespace lockstep::cli
