#include "core/planner/step_pieces.h"

#include <bit>
#include <tuple>

namespace lockstep {
namespace {

int byte_of(const std::optional<DType>& dtype) {
  return dtype ? static_cast<int>(*dtype) : 0xff;
}

}  // namespace

bool same_transformer(const ModelSpec& a, const ModelSpec& b) {
  const auto fields = [](const ModelSpec& m) {
    return std::tie(m.layers,
                    m.hidden,
                    m.heads,
                    m.kv_heads,
                    m.head_dim,
                    m.intermediate,
                    m.vocab,
                    m.max_position,
                    m.norm,
                    m.activation,
                    m.position,
                    m.qkv_bias,
                    m.output_bias,
                    m.mlp_bias,
                    m.qk_norm,
                    m.tied_embeddings,
                    m.sliding_window,
                    m.experts,
                    m.experts_per_token);
  };
  return a.family == b.family && fields(a) == fields(b);
}

Key segment_key(const Scenario& scenario, const StageKind& stage, std::int64_t model) {
  const TrainingSpec& training = scenario.training;
  const DataStrategy& data = scenario.strategy.data;
  const TensorStrategy& tensor = scenario.strategy.tensor;
  Key key;
  key.bytes(training.precision,
            byte_of(training.gradient_dtype),
            byte_of(training.reduce_dtype),
            training.scales_loss(),
            training.loss_mean,
            training.recompute,
            tensor.sequence_parallel,
            tensor.save_gathered_input);
  const bool shares = stage.embedding && stage.head;
  key.bytes(data.kind,
            data.flavour,
            data.gradient_as_bucket_view,
            data.no_sync,
            scenario.strategy.pipeline.degree > 1,
            data.degree > 1,
            shares);
  key.pair(model, tensor.degree);
  key.pair(training.micro_batch, training.seq_len);
  key.pair(scenario.strategy.context, scenario.strategy.expert);
  return key;
}

Key stage_key(const Scenario& scenario, const StageKind& stage, std::int64_t model) {
  const TrainingSpec& training = scenario.training;
  const StrategySpec& strategy = scenario.strategy;
  const DataStrategy& data = strategy.data;
  Key key;
  key.bytes(training.precision,
            byte_of(training.gradient_dtype),
            byte_of(training.reduce_dtype),
            training.optimizer,
            training.optimizer_state,
            training.clip_norm > 0,
            training.scales_loss(),
            training.loss_mean);
  key.bytes(data.kind,
            data.flavour,
            data.ideal,
            data.find_unused_parameters,
            data.static_graph,
            data.gradient_as_bucket_view,
            data.no_sync,
            data.broadcast_buffers);
  key.bytes(data.wrap,
            data.reshard,
            data.backward_prefetch,
            stage.embedding,
            stage.head,
            stage.coordinate > 0);
  key.pair(model, stage.blocks);
  key.pair(strategy.tensor.degree, strategy.pipeline.degree);
  // What DDP does in a step is the same for any number of ranks.
  const bool any_degree = data.kind == DataKind::kDdp && data.degree > 1;
  key.pair(any_degree ? 2 : data.degree, data.replicate);
  key.pair(data.reshard_group, strategy.context);
  key.words[key.count++] = data.bucket_mib ? std::bit_cast<std::uint64_t>(*data.bucket_mib) : ~0ULL;
  key.pair(strategy.expert, 0);
  return key;
}

bool is_composed(const Scenario& scenario) {
  const DataStrategy& data = scenario.strategy.data;
  const PipelineStrategy& pipeline = scenario.strategy.pipeline;
  const TrainingSpec& training = scenario.training;
  const bool owners =
      data.kind == DataKind::kDp || data.kind == DataKind::kZero2 ||
      (data.kind == DataKind::kZero1 && data.flavour == ZeroFlavour::kZeroRedundancyOptimizer);
  const bool one_chunk =
      pipeline.degree == 1 || (pipeline.chunks == 1 && (pipeline.schedule == ScheduleKind::k1F1B ||
                                                        pipeline.schedule == ScheduleKind::kGPipe));
  return scenario.model.family == ModelFamily::kTransformer && one_chunk &&
         (data.degree == 1 || !owners) && pipeline.actions_csv.empty() &&
         pipeline.layers_per_stage.empty() && training.unused.empty() &&
         (training.recompute != Recompute::kFull || training.recompute_every == 1);
}

void drop_blocks(StageLayout& layout, const StageKind& stage) {
  if (stage.blocks > 1) {
    const auto first = layout.segments.begin() + (stage.embedding ? 1 : 0);
    layout.segments.erase(first + 1, first + stage.blocks);
    layout.chunk_begin.back() = static_cast<std::int32_t>(layout.segments.size());
  }
}

}  // namespace lockstep
