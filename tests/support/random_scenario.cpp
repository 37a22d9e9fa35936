#include "tests/support/random_scenario.h"

#include <algorithm>
#include <initializer_list>

#include "core/names.h"
#include "core/planner/schedule/action_csv.h"
#include "core/planner/schedule/communication.h"

namespace lockstep::test {
namespace {

class Draw {
 public:
  explicit Draw(std::mt19937_64& random) : random_(random) {}

  std::int64_t up_to(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }
  bool one_in(std::int64_t n) { return up_to(n) == 0; }
  bool coin() { return one_in(2); }
  std::int64_t any(std::initializer_list<std::int64_t> values) {
    return values.begin()[up_to(static_cast<std::int64_t>(values.size()))];
  }
  template <typename Enum>
  Enum any_of() {
    const auto rows = name_table<Enum>();
    return rows[static_cast<std::size_t>(up_to(static_cast<std::int64_t>(rows.size())))].value;
  }

 private:
  std::mt19937_64& random_;
};

void draw_transformer(Draw& draw, ModelSpec& model) {
  model.layers = draw.any({1, 2, 2, 3, 4, 5, 8});
  model.hidden = draw.any({6, 8, 10, 12, 15});
  model.heads = draw.any({1, 2, 3, 4, 6});
  model.kv_heads = draw.coin() ? model.heads : draw.any({1, 2, 3});
  model.head_dim = draw.any({2, 4});
  model.intermediate = draw.any({7, 12, 16, 24});
  model.vocab = draw.any({11, 17, 32, 37});
  model.max_position = draw.any({8, 12});
  model.norm = draw.any_of<NormKind>();
  model.activation = draw.any_of<ActivationKind>();
  model.position = draw.any_of<PositionKind>();
  model.qkv_bias = draw.coin();
  model.output_bias = draw.coin();
  model.mlp_bias = draw.coin();
  model.qk_norm = draw.one_in(4);
  model.tied_embeddings = draw.coin();
  model.sliding_window = draw.one_in(6) ? 4 : 0;
  if (draw.one_in(6)) {
    model.experts = draw.any({2, 3, 4});
    model.experts_per_token = draw.any({1, 2});
  }
}

void draw_mlp(Draw& draw, ModelSpec& model) {
  model.family = ModelFamily::kMlp;
  model.tied_embeddings = false;
  model.widths.clear();
  const std::int64_t widths = 2 + draw.up_to(4);
  for (std::int64_t i = 0; i < widths; ++i) {
    model.widths.push_back(draw.any({3, 5, 8, 9, 16}));
  }
  model.mlp_norm = draw.any_of<MlpNormKind>();
}

void draw_training(Draw& draw, TrainingSpec& training) {
  training.seq_len = draw.any({0, 4, 6, 8});
  training.micro_batch = draw.any({1, 2, 3});
  training.accumulate = draw.any({1, 1, 2, 3, 4, 6, 8});
  training.precision = draw.any_of<Precision>();
  const auto other_dtype = [&](std::optional<DType>& dtype) {
    if (draw.one_in(6)) {
      dtype = draw.coin() ? DType::kFp32 : DType::kBf16;
    }
  };
  other_dtype(training.gradient_dtype);
  other_dtype(training.reduce_dtype);
  training.optimizer = draw.any_of<OptimizerKind>();
  training.optimizer_state = draw.any_of<OptimizerStateCreation>();
  training.recompute = draw.coin() ? Recompute::kNone : draw.any_of<Recompute>();
  training.recompute_every = training.recompute == Recompute::kFull ? draw.any({1, 1, 2, 3}) : 1;
  training.attention = draw.any_of<AttentionKind>();
  training.dropout = draw.one_in(3) ? 0.1 : 0.0;
  training.clip_norm = draw.coin() ? 1.0 : 0.0;
  if (draw.one_in(6)) {
    training.loss_scaling = draw.coin();
  }
  training.loss_mean = draw.one_in(4) ? LossMean::kGlobalTokens : LossMean::kMeanOfMeans;
}

void draw_data(Draw& draw, DataStrategy& data) {
  data.kind = draw.any_of<DataKind>();
  data.degree = draw.any({1, 2, 2, 3, 4, 5, 6, 8});
  data.replicate = data.kind == DataKind::kHsdp ? draw.any({1, 2, 2, 3}) : 1;
  data.flavour = draw.any_of<ZeroFlavour>();
  if (draw.one_in(3)) {
    data.bucket_mib = static_cast<double>(draw.any({512, 2048, 8192})) / (1 << 20);
  }
  data.ideal = draw.one_in(6);
  data.find_unused_parameters = draw.one_in(6);
  data.static_graph = draw.one_in(6);
  data.gradient_as_bucket_view = draw.one_in(3);
  data.no_sync = !draw.one_in(3);
  data.broadcast_buffers = !draw.one_in(3);
  data.wrap = draw.any_of<WrapPolicy>();
  data.reshard = draw.any_of<Reshard>();
  data.reshard_group = data.reshard == Reshard::kGroup ? draw.any({2, 2, 3, 4}) : 0;
  data.backward_prefetch = !draw.one_in(3);
}

void draw_pipeline(Draw& draw, Scenario& scenario) {
  PipelineStrategy& pipeline = scenario.strategy.pipeline;
  pipeline.degree = draw.any({2, 2, 3, 4});
  pipeline.schedule = draw.any_of<ScheduleKind>();
  pipeline.chunks = draw.any({1, 2, 2, 3});
  const std::int64_t stages = pipeline.degree * pipeline.chunks;
  if (scenario.model.family == ModelFamily::kTransformer) {
    scenario.model.layers = std::max(scenario.model.layers, stages);
  }
  if (draw.one_in(3)) {
    pipeline.layers_per_stage.assign(static_cast<std::size_t>(stages), 1);
    for (std::int64_t more = scenario.model.layers - stages; more > 0; --more) {
      ++pipeline.layers_per_stage[static_cast<std::size_t>(draw.up_to(stages))];
    }
  }
}

/// The schedule as a file, as if drawn by hand.
void write_schedule(Scenario& scenario) {
  PipelineStrategy& pipeline = scenario.strategy.pipeline;
  const ScheduleRequest request{pipeline.schedule,
                                static_cast<std::int32_t>(pipeline.degree),
                                static_cast<std::int32_t>(pipeline.chunks),
                                static_cast<std::int32_t>(scenario.training.accumulate)};
  if (problems(request).empty()) {
    pipeline.actions_csv = write_action_csv(make_schedule(request));
  }
}

Scenario draw_scenario(Draw& draw) {
  Scenario scenario;
  scenario.name = "random";
  if (draw.one_in(6)) {
    draw_mlp(draw, scenario.model);
  } else {
    draw_transformer(draw, scenario.model);
  }
  draw_training(draw, scenario.training);
  draw_data(draw, scenario.strategy.data);
  if (draw.coin()) {
    scenario.strategy.tensor.degree = draw.any({2, 2, 3, 4});
    scenario.strategy.tensor.sequence_parallel = draw.coin();
    scenario.strategy.tensor.save_gathered_input = draw.one_in(3);
  }
  if (draw.one_in(3)) {
    draw_pipeline(draw, scenario);
    if (draw.one_in(8)) {
      write_schedule(scenario);
    }
  }
  scenario.cluster.devices_per_node = 64;
  return resolved(scenario);
}

}  // namespace

Scenario random_scenario(std::mt19937_64& random) {
  Draw draw(random);
  const std::int64_t most_ranks = draw.one_in(50) ? 64 : 16;
  for (;;) {
    Scenario scenario = draw_scenario(draw);
    if (scenario.strategy.world_size() <= most_ranks && validate(scenario).empty()) {
      return scenario;
    }
  }
}

}  // namespace lockstep::test
