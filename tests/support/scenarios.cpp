#include "tests/support/scenarios.h"

#include <set>
#include <sstream>

#include "core/io/scenario_io.h"
#include "core/names.h"

namespace lockstep::test {

Scenario tiny_gpt() {
  Scenario scenario;
  scenario.model.hidden = 12;
  scenario.model.heads = 6;
  scenario.model.kv_heads = 6;
  scenario.model.head_dim = 2;
  scenario.model.intermediate = 24;
  scenario.model.vocab = 37;
  scenario.model.max_position = 12;
  scenario.training.micro_batch = 2;
  scenario.training.precision = Precision::kFp32;
  scenario.training.clip_norm = 0;
  scenario.cluster.devices_per_node = 64;
  return scenario;
}

Scenario tiny_llama() {
  Scenario scenario = tiny_gpt();
  scenario.model.heads = 4;
  scenario.model.kv_heads = 2;
  scenario.model.norm = NormKind::kRmsNorm;
  scenario.model.activation = ActivationKind::kSwiGlu;
  scenario.model.position = PositionKind::kRope;
  scenario.model.qkv_bias = false;
  scenario.model.output_bias = false;
  scenario.model.mlp_bias = false;
  scenario.model.tied_embeddings = false;
  return scenario;
}

Scenario tiny_mlp(MlpNormKind norm) {
  Scenario scenario = tiny_gpt();
  scenario.model = ModelSpec{};
  scenario.model.family = ModelFamily::kMlp;
  scenario.model.tied_embeddings = false;
  scenario.model.widths = {8, 16, 12, 5};
  scenario.model.mlp_norm = norm;
  return scenario;
}

namespace {

class Collection {
 public:
  /// `change` tells the scenario from `base`.
  template <typename Change>
  void add(const std::string& name, const Scenario& base, Change&& change) {
    Scenario scenario = base;
    scenario.name = name;
    change(scenario);
    scenario = resolved(scenario);
    require_valid(scenario);
    all.push_back({name, scenario});
  }
  std::vector<NamedScenario> all;
};

void add_ddp(Collection& list) {
  const Scenario gpt = tiny_gpt();
  const auto ddp = [](std::int64_t degree, std::int64_t microbatches) {
    return [=](Scenario& s) {
      s.strategy.data.degree = degree;
      s.training.accumulate = microbatches;
      s.strategy.data.bucket_mib = 0.004;  // 4 KiB: several buckets
    };
  };
  list.add("ddp, 3 ranks", gpt, ddp(3, 1));
  list.add("ddp, accumulation under no_sync, clipping", gpt, [&](Scenario& s) {
    ddp(2, 2)(s);
    s.training.clip_norm = 1;
  });
  list.add("ddp, accumulation without no_sync", gpt, [&](Scenario& s) {
    ddp(2, 2)(s);
    s.strategy.data.no_sync = false;
  });
  list.add("ddp, find_unused_parameters", gpt, [&](Scenario& s) {
    ddp(2, 1)(s);
    s.strategy.data.find_unused_parameters = true;
  });
  list.add("ddp, static_graph", gpt, [&](Scenario& s) {
    ddp(2, 1)(s);
    s.strategy.data.static_graph = true;
  });
  list.add("ddp, gradient_as_bucket_view, fp16 with loss scaling", gpt, [&](Scenario& s) {
    ddp(2, 2)(s);
    s.strategy.data.gradient_as_bucket_view = true;
    s.training.precision = Precision::kFp16;
    s.training.clip_norm = 1;
  });
  list.add("ddp, ideal, mean over all tokens", gpt, [&](Scenario& s) {
    ddp(2, 2)(s);
    s.strategy.data.ideal = true;
    s.training.loss_mean = LossMean::kGlobalTokens;
  });
  list.add("ddp, autocast, momentum", tiny_llama(), [&](Scenario& s) {
    ddp(2, 1)(s);
    s.training.precision = Precision::kAutocast;
    s.training.optimizer = OptimizerKind::kMomentum;
  });
  list.add("ddp, batch norm", tiny_mlp(MlpNormKind::kBatchNorm), ddp(2, 2));
  list.add("ddp, synchronised batch norm", tiny_mlp(MlpNormKind::kSyncBatchNorm), ddp(3, 1));
  list.add("dp (DataParallel)", tiny_mlp(), [](Scenario& s) {
    s.strategy.data.kind = DataKind::kDp;
    s.strategy.data.degree = 3;
    s.training.accumulate = 2;
  });
}

void add_zero(Collection& list) {
  for (const DataKind kind : {DataKind::kZero1, DataKind::kZero2}) {
    for (const NameRow<ZeroFlavour>& flavour : name_table<ZeroFlavour>()) {
      for (const std::int64_t microbatches : {1, 2}) {
        Scenario scenario = tiny_gpt();
        scenario.strategy.data.kind = kind;
        scenario.strategy.data.flavour = flavour.value;
        scenario.strategy.data.degree = microbatches == 1 ? 3 : 2;
        scenario.strategy.data.bucket_mib = 0.004;
        scenario.training.accumulate = microbatches;
        scenario.training.clip_norm = 1;
        scenario.training.precision = Precision::kBf16;
        scenario = resolved(scenario);
        if (validate(scenario).empty()) {
          list.add(std::string(name_of(kind)) + ", " + std::string(flavour.name) + ", " +
                       std::to_string(microbatches) + " micro-batches",
                   scenario,
                   [](Scenario&) {});
        }
      }
    }
  }
}

void add_sharded(Collection& list) {
  const auto sharded = [](DataKind kind, std::int64_t degree, std::int64_t microbatches) {
    return [=](Scenario& s) {
      s.strategy.data.kind = kind;
      s.strategy.data.degree = degree;
      s.training.accumulate = microbatches;
      s.training.clip_norm = 1;
    };
  };
  const Scenario gpt = tiny_gpt();
  list.add("fsdp, 3 ranks", gpt, sharded(DataKind::kFsdp, 3, 1));
  list.add("fsdp, accumulation, no prefetch", tiny_llama(), [&](Scenario& s) {
    sharded(DataKind::kFsdp, 2, 2)(s);
    s.strategy.data.backward_prefetch = false;
    s.training.precision = Precision::kBf16;
  });
  list.add("fsdp, not resharded after forward", gpt, [&](Scenario& s) {
    sharded(DataKind::kFsdp, 2, 2)(s);
    s.strategy.data.reshard = Reshard::kOff;
  });
  list.add("fsdp, wrapped at the root, fp16 with loss scaling", gpt, [&](Scenario& s) {
    sharded(DataKind::kFsdp, 2, 1)(s);
    s.strategy.data.wrap = WrapPolicy::kRoot;
    s.training.precision = Precision::kFp16;
  });
  list.add("hsdp, 2 x 2", gpt, [&](Scenario& s) {
    sharded(DataKind::kHsdp, 4, 2)(s);
    s.strategy.data.replicate = 2;
  });
  list.add("zero3, 3 ranks", tiny_llama(), sharded(DataKind::kZero3, 3, 1));
  list.add("zero3, accumulation", gpt, [&](Scenario& s) {
    sharded(DataKind::kZero3, 2, 2)(s);
    s.training.precision = Precision::kBf16;
  });
}

void add_tensor(Collection& list) {
  const auto tensor = [](std::int64_t degree, bool sequence_parallel) {
    return [=](Scenario& s) {
      s.strategy.tensor.degree = degree;
      s.strategy.tensor.sequence_parallel = sequence_parallel;
      s.training.clip_norm = 1;
    };
  };
  list.add("tp 3", tiny_gpt(), tensor(3, false));
  list.add("tp 3 with sequence parallelism, dp 2", tiny_gpt(), [&](Scenario& s) {
    tensor(3, true)(s);
    s.strategy.data.degree = 2;
  });
  list.add("tp 2 with sequence parallelism, gathered inputs saved, full recomputation",
           tiny_llama(),
           [&](Scenario& s) {
             tensor(2, true)(s);
             s.strategy.tensor.save_gathered_input = true;
             s.training.recompute = Recompute::kFull;
             s.model.qk_norm = true;
           });
  list.add("tp 2, fsdp 2, selective recomputation, dropout", tiny_gpt(), [&](Scenario& s) {
    tensor(2, true)(s);
    s.strategy.data.kind = DataKind::kFsdp;
    s.strategy.data.degree = 2;
    s.training.recompute = Recompute::kSelective;
    s.training.attention = AttentionKind::kPlain;
    s.training.dropout = 0.1;
  });
  list.add("experts, tp 2, dp 2", tiny_llama(), [&](Scenario& s) {
    tensor(2, false)(s);
    s.strategy.data.degree = 2;
    s.model.experts = 3;
    s.model.experts_per_token = 2;
  });
}

bool takes_chunks(ScheduleKind kind) {
  return kind != ScheduleKind::kGPipe && kind != ScheduleKind::k1F1B && kind != ScheduleKind::kZbH1;
}

void add_pipelines(Collection& list) {
  for (const NameRow<ScheduleKind>& schedule : name_table<ScheduleKind>()) {
    const auto pipeline = [&](Scenario& s) {
      s.strategy.pipeline.degree = 2;
      s.strategy.pipeline.schedule = schedule.value;
      s.strategy.pipeline.chunks = takes_chunks(schedule.value) ? 2 : 1;
      s.model.layers = 2 * s.strategy.pipeline.chunks;
      s.training.accumulate = 3;
      s.training.clip_norm = 1;
    };
    const std::string name(schedule.name);
    list.add("pp 2, " + name, tiny_gpt(), pipeline);
    list.add("pp 2, " + name + ", fsdp 2", tiny_llama(), [&](Scenario& s) {
      pipeline(s);
      s.strategy.data.kind = DataKind::kFsdp;
      s.strategy.data.degree = 2;
    });
  }
  list.add("pp 3, uneven stages, zero1, tp 2", tiny_gpt(), [](Scenario& s) {
    s.model.layers = 4;
    s.strategy.pipeline.degree = 3;
    s.strategy.pipeline.layers_per_stage = {1, 2, 1};
    s.strategy.tensor.degree = 2;
    s.strategy.tensor.sequence_parallel = true;
    s.strategy.data.kind = DataKind::kZero1;
    s.strategy.data.flavour = ZeroFlavour::kMegatron;
    s.strategy.data.degree = 2;
    s.training.accumulate = 3;
    s.training.clip_norm = 1;
    s.training.precision = Precision::kBf16;
  });
  list.add("pp 2, tied embeddings, ddp 2, fp16 with loss scaling", tiny_gpt(), [](Scenario& s) {
    s.strategy.pipeline.degree = 2;
    s.strategy.data.degree = 2;
    s.training.accumulate = 2;
    s.training.clip_norm = 1;
    s.training.precision = Precision::kFp16;
  });
}

}  // namespace

std::vector<NamedScenario> one_of_each() {
  Collection list;
  add_ddp(list);
  add_zero(list);
  add_sharded(list);
  add_tensor(list);
  add_pipelines(list);
  return list.all;
}

std::string text_of(const Scenario& scenario) {
  const auto lines_of = [](const Scenario& each) {
    std::istringstream text(scenario_text(each));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) {
      lines.push_back(line.substr(std::min(line.size(), line.find_first_not_of(' '))));
    }
    return lines;
  };
  const std::vector<std::string> usual = lines_of(Scenario{});
  const std::set<std::string> known(usual.begin(), usual.end());
  std::string text;
  for (const std::string& line : lines_of(scenario)) {
    if (known.count(line) == 0) {
      text += text.empty() ? line : " " + line;
    }
  }
  return text;
}

}  // namespace lockstep::test
