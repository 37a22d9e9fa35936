#include "tests/support/awkward.h"

#include <string>

#include "core/names.h"

namespace lockstep::test {
namespace {

Scenario awkward_gpt() {
  Scenario scenario = tiny_gpt();
  scenario.model.layers = 4;
  scenario.model.hidden = 50;
  scenario.model.heads = 6;
  scenario.model.kv_heads = 6;
  scenario.model.head_dim = 6;
  scenario.model.intermediate = 66;
  scenario.model.vocab = 257;
  scenario.model.max_position = 6;
  scenario.training.micro_batch = 1;
  scenario.training.precision = Precision::kFp64;
  scenario.training.clip_norm = 0.1;
  return scenario;
}

Scenario awkward_llama() {
  Scenario scenario = awkward_gpt();
  scenario.model.kv_heads = 2;
  scenario.model.norm = NormKind::kRmsNorm;
  scenario.model.activation = ActivationKind::kSwiGlu;
  scenario.model.position = PositionKind::kRope;
  scenario.model.qkv_bias = false;
  scenario.model.output_bias = false;
  scenario.model.mlp_bias = false;
  return scenario;
}

/// A data-parallel kind with one of its settings.
struct DataForm {
  std::string name;
  DataStrategy data;
  bool usual = true;  ///< the one of its kind that stands for it
};

DataForm form(DataKind kind, const std::string& setting = "") {
  DataForm it{std::string(name_of(kind)) + (setting.empty() ? "" : ", " + setting), {}, true};
  it.data.kind = kind;
  const bool buckets = kind != DataKind::kDp && kind != DataKind::kFsdp && kind != DataKind::kHsdp;
  if (buckets && kind != DataKind::kZero3) {
    it.data.bucket_mib = 0.02;  // about 20 KiB: many buckets
  }
  it.usual = setting.empty();
  return it;
}

template <typename Change>
DataForm form(DataKind kind, const std::string& setting, Change&& change) {
  DataForm it = form(kind, setting);
  change(it.data);
  return it;
}

std::vector<DataForm> data_forms() {
  std::vector<DataForm> all = {
      form(DataKind::kDp),
      form(DataKind::kDdp),
      form(DataKind::kDdp,
           "gradient_as_bucket_view",
           [](DataStrategy& d) { d.gradient_as_bucket_view = true; }),
      form(DataKind::kDdp, "static_graph", [](DataStrategy& d) { d.static_graph = true; }),
      form(DataKind::kDdp, "without no_sync", [](DataStrategy& d) { d.no_sync = false; }),
      form(DataKind::kDdp, "ideal", [](DataStrategy& d) { d.ideal = true; }),
      form(DataKind::kFsdp),
      form(DataKind::kFsdp, "not resharded", [](DataStrategy& d) { d.reshard = Reshard::kOff; }),
      form(DataKind::kFsdp,
           "a unit a module, no prefetch",
           [](DataStrategy& d) {
             d.wrap = WrapPolicy::kEveryModule;
             d.backward_prefetch = false;
           }),
      form(DataKind::kHsdp),
      form(DataKind::kZero3),
  };
  for (const DataKind kind : {DataKind::kZero1, DataKind::kZero2}) {
    for (const NameRow<ZeroFlavour>& flavour : name_table<ZeroFlavour>()) {
      all.push_back(form(
          kind, std::string(flavour.name), [&](DataStrategy& d) { d.flavour = flavour.value; }));
      all.back().usual = flavour.value == ZeroFlavour::kPaper;
    }
  }
  return all;
}

class Grid {
 public:
  explicit Grid(const NamedScenario& training) : training_(training) {}

  template <typename Change>
  void add(const std::string& name, bool usual, Change&& change) {
    Scenario scenario = training_.scenario;
    scenario.name = training_.name + "; " + name;
    change(scenario.strategy);
    scenario = resolved(scenario);
    if (validate(scenario).empty()) {
      all.push_back({scenario.name, scenario, usual});
    }
  }

  /// The form on `data` x `tensor` x `pipeline` ranks.
  void add(const DataForm& form, std::int64_t pipeline, std::int64_t data, std::int64_t tensor) {
    for (const bool sequence_parallel : {false, true}) {
      if (sequence_parallel && tensor == 1) {
        continue;
      }
      const std::string ranks = "pp " + std::to_string(pipeline) + ", dp " + std::to_string(data) +
                                ", tp " + std::to_string(tensor) +
                                (sequence_parallel ? " with sequence parallelism" : "");
      add(form.name + ", " + ranks, form.usual, [&](StrategySpec& s) {
        s.data = form.data;
        s.data.degree = data;
        s.data.replicate = form.data.kind == DataKind::kHsdp ? 2 : 1;
        s.pipeline.degree = pipeline;
        s.tensor.degree = tensor;
        s.tensor.sequence_parallel = sequence_parallel;
      });
    }
  }

  std::vector<AwkwardScenario> all;

 private:
  const NamedScenario& training_;
};

bool goes_with_pipelines(DataKind kind) {
  return kind != DataKind::kDp && kind != DataKind::kZero2 && kind != DataKind::kZero3;
}

void add_data_forms(Grid& grid) {
  for (const DataForm& form : data_forms()) {
    const DataKind kind = form.data.kind;
    if (goes_with_pipelines(kind) && kind != DataKind::kHsdp) {
      grid.add(form, 2, 2, 2);
    } else if (kind == DataKind::kHsdp) {
      grid.add(form, 2, 4, 1);  // 2 replicas of 2 shards
      grid.add(form, 1, 4, 2);
    } else {
      grid.add(form, 1, 4, kind == DataKind::kDp ? 1 : 2);
    }
    if (kind != DataKind::kHsdp) {
      grid.add(form, 1, 3, 1);
    }
  }
  // A replica a rank, three shards a replica: sizes that neither divides.
  DataForm six = form(DataKind::kHsdp, "2 x 3");
  grid.add(six, 1, 6, 1);
}

void add_schedules(Grid& grid) {
  for (const NameRow<ScheduleKind>& schedule : name_table<ScheduleKind>()) {
    for (const DataKind kind : {DataKind::kDdp, DataKind::kFsdp}) {
      const bool usual = kind == DataKind::kDdp;
      const std::string name(schedule.name);
      const auto change = [&](StrategySpec& s) {
        const bool one = schedule.value == ScheduleKind::kGPipe ||
                         schedule.value == ScheduleKind::k1F1B ||
                         schedule.value == ScheduleKind::kZbH1;
        s.pipeline.schedule = schedule.value;
        s.pipeline.chunks = one ? 1 : 2;
        s.pipeline.degree = 2;
        s.data.kind = kind;
        s.data.degree = 2;
        s.tensor.degree = 2;
        s.tensor.sequence_parallel = true;
      };
      grid.add(name + ", " + std::string(name_of(kind)) + ", pp 2, dp 2, tp 2", usual, change);
    }
  }
}

}  // namespace

std::vector<NamedScenario> awkward_trainings() {
  std::vector<NamedScenario> all(4);
  NamedScenario& gpt = all[0];
  gpt = {"GPT, tied, AdamW, M 3, recomputed", awkward_gpt()};
  gpt.scenario.training.accumulate = 3;
  gpt.scenario.training.recompute = Recompute::kFull;

  NamedScenario& llama = all[1];
  llama = {"Llama, untied, SGD, M 4, mean over all tokens", awkward_llama()};
  llama.scenario.model.tied_embeddings = false;
  llama.scenario.training.accumulate = 4;
  llama.scenario.training.optimizer = OptimizerKind::kSgd;
  llama.scenario.training.loss_mean = LossMean::kGlobalTokens;
  llama.scenario.training.attention = AttentionKind::kPlain;
  llama.scenario.training.recompute = Recompute::kSelective;

  NamedScenario& tied = all[2];
  tied = {"Llama, tied, AdamW, M 4", awkward_llama()};
  tied.scenario.training.accumulate = 4;

  NamedScenario& untied = all[3];
  untied = {"GPT, untied, SGD, M 3, every other layer recomputed", awkward_gpt()};
  untied.scenario.model.tied_embeddings = false;
  untied.scenario.training.accumulate = 3;
  untied.scenario.training.optimizer = OptimizerKind::kSgd;
  untied.scenario.training.recompute = Recompute::kFull;
  untied.scenario.training.recompute_every = 2;
  return all;
}

std::vector<AwkwardScenario> awkward_strategies(const NamedScenario& training) {
  Grid grid(training);
  add_data_forms(grid);
  add_schedules(grid);
  grid.add("tp 3", true, [](StrategySpec& s) { s.tensor.degree = 3; });
  grid.add("tp 3 with sequence parallelism", true, [](StrategySpec& s) {
    s.tensor.degree = 3;
    s.tensor.sequence_parallel = true;
  });
  grid.add("pp 3, uneven stages", true, [](StrategySpec& s) {
    s.pipeline.degree = 3;
    s.pipeline.layers_per_stage = {1, 2, 1};
  });
  return grid.all;
}

}  // namespace lockstep::test
