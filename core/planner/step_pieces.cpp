#include "core/planner/step_pieces.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "core/planner/planner.h"
#include "core/planner/stage_emitter.h"

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

// ---- stages ------------------------------------------------------------------------------------

std::int64_t recompute_every(const TrainingSpec& training) {
  return training.recompute == Recompute::kFull ? training.recompute_every : 1;
}

namespace {

StageForm form_of(const StageLayout& layout, std::int32_t segments) {
  StageForm form;
  form.behind_first = layout.coordinate > 0;
  for (int chunk = 0; chunk < layout.chunks(); ++chunk) {
    const int begin = layout.begin(chunk);
    const int end = layout.end(chunk);
    ChunkForm each;
    each.embedding = layout.segment(begin) == 0;
    each.head = layout.segment(end - 1) == segments - 1;
    each.blocks = end - begin - (each.embedding ? 1 : 0) - (each.head ? 1 : 0);
    form.chunks.push_back(each);
  }
  return form;
}

template <typename T>
std::size_t interned(std::vector<T>& table, const T& value) {
  const auto found = std::find(table.begin(), table.end(), value);
  const auto number = static_cast<std::size_t>(found - table.begin());
  if (found == table.end()) {
    table.push_back(value);
  }
  return number;
}

}  // namespace

Stages make_stages(const Scenario& scenario, Model& model, const Schedule& schedule) {
  const PipelineStrategy& pipeline = scenario.strategy.pipeline;
  const ModelGraph& graph = *model.graph;
  Stages stages;
  stages.degree = pipeline.degree;
  stages.chunks = schedule.chunks;
  stages.turns = pipeline.schedule == ScheduleKind::kZbV;
  stages.every = recompute_every(scenario.training);
  stages.layers_per_stage = pipeline.layers_per_stage;
  for (std::int32_t rank = 0; rank < pipeline.degree; ++rank) {
    const StageLayout layout = stage_layout(scenario, graph, schedule, rank);
    StageForm form = form_of(layout, static_cast<std::int32_t>(graph.segments.size()));
    form.turns = stages.turns && rank + 1 == pipeline.degree;
    StageKind kind;
    kind.coordinate = rank;
    kind.form = static_cast<std::int64_t>(interned(model.forms, form));
    StagePlace place;
    place.head_module = graph.segments.back().first_module;
    place.modules_per_block = static_cast<std::int32_t>(graph.templates[1].modules.size());
    for (int chunk = 0; chunk < layout.chunks(); ++chunk) {
      const ChunkForm& each = form.chunks[static_cast<std::size_t>(chunk)];
      const std::int32_t block = layout.segment(layout.begin(chunk)) + (each.embedding ? 1 : 0);
      const Segment& first = graph.segments[static_cast<std::size_t>(block)];
      place.first_block_module.push_back(first.first_module);
      kind.first_layer.push_back(static_cast<std::int32_t>(first.layer % stages.every));
    }
    stages.places.push_back(place);
    const auto same =
        std::find_if(stages.kinds.begin(), stages.kinds.end(), [&](const StageKind& other) {
          return other.form == kind.form && other.first_layer == kind.first_layer;
        });
    stages.kind_of_rank.push_back(static_cast<std::size_t>(same - stages.kinds.begin()));
    if (same == stages.kinds.end()) {
      stages.kinds.push_back(std::move(kind));
    }
  }
  return stages;
}

Walks make_walks(const Scenario& scenario) {
  const PipelineStrategy& pipeline = scenario.strategy.pipeline;
  Walks walks;
  walks.schedule = pipeline_schedule(scenario);
  if (pipeline.degree == 1) {
    walks.ranks.push_back(stage_walk(walks.schedule.microbatches));
  } else {
    bool whole = false;
    for (std::int32_t rank = 0; rank < pipeline.degree; ++rank) {
      walks.regular = walks.regular && is_regular(walks.schedule, rank);
      walks.ranks.push_back(stage_walk(walks.schedule, rank));
      for (const Action& action : walks.schedule.ranks[static_cast<std::size_t>(rank)]) {
        whole = whole || action.kind == ActionKind::kBackward;
        walks.splits = walks.splits || action.kind == ActionKind::kBackwardInput;
      }
    }
    walks.regular = walks.regular && !(whole && walks.splits);
    walks.stretch = pipeline_stretch(walks.schedule);
  }
  walks.schedule.ranks.clear();
  return walks;
}

// ---- keys --------------------------------------------------------------------------------------

namespace {

/// Kinds that gather whole parameters per segment (core/planner/data/fsdp.h).
bool gathers(DataKind kind) {
  return kind == DataKind::kZero3 || kind == DataKind::kFsdp || kind == DataKind::kHsdp;
}

}  // namespace

bool reduces_every_pass(const Scenario& scenario) {
  const DataKind kind = scenario.strategy.data.kind;
  return (kind == DataKind::kZero2 || gathers(kind)) && scenario.strategy.data.degree > 1 &&
         scenario.strategy.pipeline.degree == 1;
}

PieceKeys piece_keys(const Scenario& scenario, std::int64_t model, bool splits) {
  const TrainingSpec& training = scenario.training;
  const StrategySpec& strategy = scenario.strategy;
  const DataStrategy& data = strategy.data;
  const bool sequence_parallel = strategy.tensor.sequence_parallel;
  // What DDP does in a step is the same for any number of ranks.
  const bool any_degree = data.kind == DataKind::kDdp && data.degree > 1;
  // Segments see whole parameters and gradients of all kinds that gather, in one way.
  const DataKind seen = gathers(data.kind) ? DataKind::kFsdp : data.kind;
  Key common;
  common.bytes(training.precision,
               byte_of(training.gradient_dtype),
               byte_of(training.reduce_dtype),
               training.scales_loss(),
               training.loss_mean,
               splits,
               data.gradient_as_bucket_view,
               data.no_sync);
  common.pair(model, strategy.tensor.degree);
  common.pair(strategy.context, strategy.expert);
  PieceKeys keys{common, common};
  // Gathered gradients stay whole until the last micro-batch of a pipeline.
  keys.segment.bytes(seen,
                     data.flavour,
                     sequence_parallel,
                     strategy.tensor.save_gathered_input,
                     data.degree > 1,
                     gathers(data.kind) && strategy.pipeline.degree > 1);
  keys.segment.pair(training.micro_batch, training.seq_len);
  // ZeRO-2 reduces when gradients are ready, which those of norms are later under sequence
  // parallelism.
  keys.stage.bytes(data.kind,
                   data.flavour,
                   data.kind == DataKind::kZero2 && sequence_parallel,
                   data.ideal,
                   data.find_unused_parameters,
                   data.static_graph,
                   data.broadcast_buffers,
                   data.wrap);
  keys.stage.bytes(training.optimizer,
                   training.optimizer_state,
                   training.clip_norm > 0,
                   training.accumulate > 1 && !reduces_every_pass(scenario),
                   data.reshard,
                   data.backward_prefetch);
  keys.stage.pair(any_degree ? 2 : data.degree, data.replicate);
  keys.stage.pair(data.reshard_group, strategy.pipeline.degree);
  keys.stage.word(data.bucket_mib ? std::bit_cast<std::uint64_t>(*data.bucket_mib) : ~0ULL);
  return keys;
}

Key segment_key(const PieceKeys& keys, Recompute recompute, bool shares_weight) {
  Key key = keys.segment;
  key.bytes(recompute, shares_weight);
  return key;
}

Key stage_key(const PieceKeys& keys, std::int64_t form) {
  Key key = keys.stage;
  key.word(static_cast<std::uint64_t>(form));
  return key;
}

bool is_composed(const Scenario& scenario) {
  const DataStrategy& data = scenario.strategy.data;
  const bool owners =
      data.kind == DataKind::kDp ||
      (data.kind == DataKind::kZero1 && data.flavour == ZeroFlavour::kZeroRedundancyOptimizer);
  return scenario.model.family == ModelFamily::kTransformer && (data.degree == 1 || !owners) &&
         scenario.strategy.pipeline.actions_csv.empty() && scenario.training.unused.empty();
}

}  // namespace lockstep
