// lockstep models: the named models, or one model module by module.
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "core/error.h"
#include "core/io/hf_config.h"
#include "core/io/json_writer.h"
#include "core/model_graph.h"
#include "core/model_presets.h"
#include "core/module_cost.h"
#include "core/report_text.h"
#include "core/scenario.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "Named models with their exact parameter counts; one model module by module.\n\n"
    "  lockstep models\n"
    "  lockstep models llama-3.1-8b --seq-len 8192\n"
    "  lockstep models --config config.json --json\n";

/// Modules of one name: what one of them costs, and how many there are.
struct ModuleRow {
  std::string name;
  std::string kind;
  std::int64_t count = 0;
  std::int64_t parameters = 0;  ///< of one
  ModuleCost cost;              ///< of one
};

std::int64_t parameters_of(const ModelGraph& graph, std::uint32_t id) {
  const SegmentTemplate& form = graph.form(graph.segment_of(id));
  std::int64_t elements = 0;
  for (const std::int16_t index : graph.module(id).parameters) {
    const ParameterDef& definition = form.parameters[static_cast<std::size_t>(index)];
    elements += definition.tied ? 0 : definition.rows * definition.columns;
  }
  return elements;
}

/// Equal segments share rows; their modules are those of the first.
std::vector<ModuleRow> module_rows(const ModelGraph& graph,
                                   const TrainingSpec& training,
                                   const LocalSizes& sizes) {
  std::vector<ModuleRow> rows;
  std::map<std::int32_t, std::size_t> first_row;  // by form
  for (const Segment& segment : graph.segments) {
    const auto modules = static_cast<std::int32_t>(graph.form(segment).modules.size());
    const auto [found, is_new] = first_row.try_emplace(segment.form, rows.size());
    for (std::int32_t i = 0; i < modules; ++i) {
      if (!is_new) {
        ++rows[found->second + static_cast<std::size_t>(i)].count;
        continue;
      }
      const auto id = static_cast<std::uint32_t>(segment.first_module + i);
      ModuleRow& row = rows.emplace_back();
      const bool layer = segment.layer >= 0;
      row.name =
          layer ? graph.form(segment).name + "*." + graph.module(id).name : graph.module_name(id);
      row.kind = name_of(graph.module(id).kind);
      row.count = 1;
      row.parameters = parameters_of(graph, id);
      row.cost = module_cost(graph, id, training, sizes);
    }
  }
  return rows;
}

struct ModelsCommand {
  std::string name;
  std::string config;
  std::int64_t seq_len = 0;
  std::int64_t micro_batch = 1;
  bool json = false;
  bool csv = false;

  int run() const {
    const bool one = !name.empty() || !config.empty();
    print(one ? one_model() : all_models());
    return 0;
  }

 private:
  ModelSpec model() const {
    if (!config.empty()) {
      return load_hf_config(config).model;
    }
    if (const std::optional<ModelSpec> found = find_model_preset(name)) {
      return *found;
    }
    throw UsageError("models", unknown_model_message(name) + "; `lockstep models` lists them");
  }

  std::string all_models() const {
    JsonWriter writer;
    writer.begin_object();
    writer.field("schema_version", 1);
    writer.begin_array("models");
    TextTable table({{"model"},
                     {"parameters", Align::kRight},
                     {"layers", Align::kRight},
                     {"hidden", Align::kRight},
                     {"heads", Align::kRight},
                     {"vocabulary", Align::kRight},
                     {"positions", Align::kRight},
                     {"source"}});
    std::string lines = "model,parameters,active_parameters,layers,hidden\n";
    for (const ModelPreset& preset : model_presets()) {
      const ModelSpec& it = preset.model;
      const bool mlp = it.family == ModelFamily::kMlp;
      const std::int64_t parameters = build_model_graph(it, TrainingSpec{})->parameter_count();
      const std::int64_t layers = mlp ? static_cast<std::int64_t>(it.widths.size()) - 1 : it.layers;
      const std::int64_t hidden = mlp ? it.widths[1] : it.hidden;
      const std::string heads = it.kv_heads == it.heads
                                    ? std::to_string(it.heads)
                                    : fmt::format("{}/{}", it.heads, it.kv_heads);
      table.add({it.name,
                 grouped(parameters),
                 std::to_string(layers),
                 std::to_string(hidden),
                 mlp ? "-" : heads,
                 mlp ? "-" : std::to_string(it.vocab),
                 mlp ? "-" : std::to_string(it.max_position),
                 preset.source});
      lines += fmt::format(
          "{},{},{},{},{}\n", it.name, parameters, active_parameter_count(it), layers, hidden);
      writer.begin_object();
      writer.field("name", it.name);
      writer.field("parameters", parameters);
      writer.field("active_parameters", active_parameter_count(it));
      writer.field("layers", layers);
      writer.field("hidden", hidden);
      writer.field("aliases", preset.aliases);
      writer.field("source", preset.source);
      writer.end_object();
    }
    writer.end_array();
    writer.end_object();
    return json ? writer.text() : csv ? lines : table.text();
  }

  std::string one_model() const {
    Scenario scenario;
    scenario.model = model();
    scenario.training.seq_len = seq_len;
    scenario.training.micro_batch = micro_batch;
    scenario = resolved(std::move(scenario));
    const Problems problems = validate(scenario);
    if (!problems.empty() && config.empty()) {
      throw UsageError("models", problems.one_line());
    }
    require_valid(scenario);
    const auto graph = build_model_graph(scenario.model, scenario.training);
    LocalSizes sizes;
    sizes.batch = scenario.training.micro_batch;
    sizes.seq = scenario.training.seq_len;
    const std::vector<ModuleRow> rows = module_rows(*graph, scenario.training, sizes);
    return json  ? model_json(scenario, *graph, rows)
           : csv ? model_csv(rows)
                 : model_text(scenario, *graph, rows);
  }

  static std::string model_text(const Scenario& scenario,
                                const ModelGraph& graph,
                                const std::vector<ModuleRow>& rows) {
    TextTable table({{"module"},
                     {"count", Align::kRight},
                     {"parameters of one", Align::kRight},
                     {"of all", Align::kRight},
                     {"forward FLOP", Align::kRight},
                     {"backward FLOP", Align::kRight},
                     {"saved for backward", Align::kRight}});
    ModuleCost all;
    for (const ModuleRow& row : rows) {
      for (std::int64_t i = 0; i < row.count; ++i) {
        all += row.cost;
      }
      table.add({row.name,
                 std::to_string(row.count),
                 grouped(row.parameters),
                 grouped(row.count * row.parameters),
                 si_text(row.cost.forward_flops),
                 si_text(row.cost.backward_input_flops + row.cost.backward_weight_flops),
                 bytes_text(row.cost.saved_bytes)});
    }
    table.add({"all",
               "",
               "",
               grouped(graph.parameter_count()),
               si_text(all.forward_flops),
               si_text(all.backward_input_flops + all.backward_weight_flops),
               bytes_text(all.saved_bytes)});
    std::string text = fmt::format(
        "{}: {} parameters; FLOP and bytes of one module for one micro-batch of {} x {} tokens, "
        "bf16, flash attention, no recompute\n\n",
        scenario.model.name,
        grouped(graph.parameter_count()),
        scenario.training.micro_batch,
        scenario.training.seq_len);
    text += table.text();
    for (const std::string& assumption : scenario.model.assumptions) {
      text += "assumed: " + assumption + "\n";
    }
    return text;
  }

  static std::string model_json(const Scenario& scenario,
                                const ModelGraph& graph,
                                const std::vector<ModuleRow>& rows) {
    JsonWriter writer;
    writer.begin_object();
    writer.field("schema_version", 1);
    writer.field("name", scenario.model.name);
    writer.field("parameters", graph.parameter_count());
    writer.field("active_parameters", active_parameter_count(scenario.model));
    writer.field("seq_len", scenario.training.seq_len);
    writer.field("micro_batch", scenario.training.micro_batch);
    writer.field("assumptions", scenario.model.assumptions);
    writer.begin_array("modules");
    for (const ModuleRow& row : rows) {
      writer.begin_object();
      writer.field("name", row.name);
      writer.field("kind", row.kind);
      writer.field("count", row.count);
      writer.field("parameters", row.parameters);
      writer.field("forward_flops", row.cost.forward_flops);
      writer.field("backward_input_flops", row.cost.backward_input_flops);
      writer.field("backward_weight_flops", row.cost.backward_weight_flops);
      writer.field("saved_bytes", row.cost.saved_bytes);
      writer.end_object();
    }
    writer.end_array();
    writer.end_object();
    return writer.text();
  }

  static std::string model_csv(const std::vector<ModuleRow>& rows) {
    std::string text =
        "module,kind,count,parameters,forward_flops,backward_input_flops,backward_weight_flops,"
        "saved_bytes\n";
    for (const ModuleRow& row : rows) {
      text += fmt::format("{},{},{},{},{},{},{},{}\n",
                          row.name,
                          row.kind,
                          row.count,
                          row.parameters,
                          row.cost.forward_flops,
                          row.cost.backward_input_flops,
                          row.cost.backward_weight_flops,
                          row.cost.saved_bytes);
    }
    return text;
  }
};

}  // namespace

void add_models_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<ModelsCommand>();
  CLI::App* app = program.add_subcommand("models");
  app->description(kDescription);
  CLI::Option* name = app->add_option("name", command->name, "preset to show module by module");
  app->add_option("--config", command->config, "Hugging Face config.json instead")->excludes(name);
  app->add_option("--seq-len", command->seq_len, "tokens per sample (default: the model's)");
  app->add_option("--micro-batch", command->micro_batch, "samples (default 1)");
  CLI::Option* json = app->add_flag("--json", command->json, "one JSON object");
  app->add_flag("--csv", command->csv, "comma-separated values")->excludes(json);
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
