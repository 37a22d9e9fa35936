#include "core/legality.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/error.h"
#include "core/limits.h"
#include "core/names.h"
#include "core/planner/schedule/action_csv.h"

namespace lockstep {
namespace {

// Every predicate also meets scenarios that their section refuses (zero heads, negative degrees),
// because all problems are reported at once. divides() and products() are defined for those.

/// False only when both are sane and `divisor` does not divide `value`.
bool divides(std::int64_t divisor, std::int64_t value) {
  return divisor < 1 || value < 0 || value % divisor == 0;
}

std::int64_t positive(std::int64_t value) {
  return std::max<std::int64_t>(value, 0);
}

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) {
    result = saturating_product({result, positive(factor)});
  }
  return result;
}

std::int64_t tp(const Scenario& s) {
  return s.strategy.tensor.degree;
}
std::int64_t pp(const Scenario& s) {
  return s.strategy.pipeline.degree;
}
std::int64_t dp(const Scenario& s) {
  return s.strategy.data.degree;
}
bool is_transformer(const Scenario& s) {
  return s.model.family == ModelFamily::kTransformer;
}
bool is_mlp(const Scenario& s) {
  return s.model.family == ModelFamily::kMlp;
}

std::int64_t sequence(const Scenario& s) {
  if (is_mlp(s)) {
    return 1;
  }
  return s.training.seq_len == 0 ? s.model.max_position : s.training.seq_len;
}

std::int64_t world_size(const Scenario& s) {
  return product({dp(s), tp(s), pp(s), s.strategy.context});
}

std::int64_t stage_count(const Scenario& s) {
  return product({pp(s), s.strategy.pipeline.chunks});
}

/// Layers that can be spread over stages or named by training.unused.
std::int64_t layer_count(const Scenario& s) {
  return is_mlp(s) ? static_cast<std::int64_t>(s.model.widths.size()) - 1 : s.model.layers;
}

// --- Tensor parallel -----------------------------------------------------------------------------

std::string tp_heads_values(const Scenario& s) {
  return fmt::format("tp {}, heads {}", tp(s), s.model.heads);
}
std::string tp_kv_heads_values(const Scenario& s) {
  return fmt::format("tp {}, kv_heads {}", tp(s), s.model.kv_heads);
}
std::string tp_intermediate_values(const Scenario& s) {
  return fmt::format("tp {}, intermediate {}", tp(s), s.model.intermediate);
}
std::string tp_sequence_values(const Scenario& s) {
  return fmt::format("tp {}, seq_len {}", tp(s), sequence(s));
}

// --- Pipeline ------------------------------------------------------------------------------------

/// What make_schedule will be asked, or none while the numbers are absurd or nothing is scheduled.
std::optional<ScheduleRequest> schedule_request(const Scenario& s) {
  const PipelineStrategy& pipeline = s.strategy.pipeline;
  const bool sane = pipeline.degree > 1 && pipeline.chunks >= 1 && stage_count(s) <= kMaxStages &&
                    s.training.accumulate >= 1 && s.training.accumulate <= kMaxAccumulate;
  if (!sane || !pipeline.actions_csv.empty()) {
    return std::nullopt;
  }
  return ScheduleRequest{pipeline.schedule,
                         static_cast<std::int32_t>(pipeline.degree),
                         static_cast<std::int32_t>(pipeline.chunks),
                         static_cast<std::int32_t>(s.training.accumulate)};
}

bool schedule_broken(const Scenario& s) {
  const std::optional<ScheduleRequest> request = schedule_request(s);
  return request && !problems(*request).empty();
}

std::string schedule_values(const Scenario& s) {
  return fmt::format("{}", fmt::join(problems(*schedule_request(s)), "; "));
}

/// The schedule of the file; none without one, or when it cannot be read (its reader says why).
std::optional<Schedule> schedule_of_file(const Scenario& s) {
  if (s.strategy.pipeline.actions_csv.empty()) {
    return std::nullopt;
  }
  try {
    return read_action_csv(s.strategy.pipeline.actions_csv);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool file_is_for_others(const Scenario& s) {
  const std::optional<Schedule> file = schedule_of_file(s);
  return file && (file->pipeline_degree != s.strategy.pipeline.degree ||
                  file->chunks != s.strategy.pipeline.chunks ||
                  file->microbatches != s.training.accumulate);
}

std::string file_values(const Scenario& s) {
  const std::optional<Schedule> file = schedule_of_file(s);
  return fmt::format("the file has {} ranks, {} chunks, {} micro-batches; asked for {}, {}, {}",
                     file->pipeline_degree,
                     file->chunks,
                     file->microbatches,
                     s.strategy.pipeline.degree,
                     s.strategy.pipeline.chunks,
                     s.training.accumulate);
}

bool stage_list_broken(const Scenario& s) {
  const std::vector<std::int64_t>& layers = s.strategy.pipeline.layers_per_stage;
  std::int64_t sum = 0;
  for (const std::int64_t count : layers) {
    sum = saturating_sum({sum, positive(count)});
  }
  return !layers.empty() &&
         (static_cast<std::int64_t>(layers.size()) != stage_count(s) || sum != s.model.layers);
}

std::string stage_values(const Scenario& s) {
  return fmt::format(
      "pp {} x chunks {}, layers {}", pp(s), s.strategy.pipeline.chunks, s.model.layers);
}

// --- Batch ---------------------------------------------------------------------------------------

bool batch_indivisible(const Scenario& s) {
  return !divides(product({s.training.micro_batch, dp(s)}), s.training.global_batch);
}

/// accumulate 1 is the default and means "as global_batch says".
bool batch_contradicts(const Scenario& s) {
  const TrainingSpec& t = s.training;
  return t.global_batch > 0 && t.accumulate > 1 &&
         product({t.micro_batch, t.accumulate, dp(s)}) != t.global_batch;
}

std::string batch_values(const Scenario& s) {
  return fmt::format("global_batch {}, micro_batch {}, accumulate {}, dp {}",
                     s.training.global_batch,
                     s.training.micro_batch,
                     s.training.accumulate,
                     dp(s));
}

/// Elements of the largest activation of one micro-batch: residual stream, MLP, logits or scores.
std::int64_t largest_tensor(const Scenario& s) {
  const std::int64_t tokens = product({s.training.micro_batch, sequence(s)});
  if (is_mlp(s)) {
    const std::vector<std::int64_t>& widths = s.model.widths;
    const auto widest = std::max_element(widths.begin(), widths.end());
    return product({tokens, widest == widths.end() ? 1 : *widest});
  }
  const ModelSpec& m = s.model;
  const std::int64_t visited = std::max<std::int64_t>(m.experts_per_token, 1);
  const std::int64_t width = std::max(
      {m.hidden, product({m.heads, m.head_dim}), product({m.intermediate, visited}), m.vocab});
  const bool scores = s.training.attention == AttentionKind::kPlain;
  return std::max(product({tokens, width}), scores ? product({tokens, m.heads, sequence(s)}) : 0);
}

std::string tensor_values(const Scenario& s) {
  return fmt::format("largest tensor {} elements, layers {}, accumulate {}",
                     largest_tensor(s),
                     layer_count(s),
                     s.training.accumulate);
}

// --- Cluster -------------------------------------------------------------------------------------

std::string world_values(const Scenario& s) {
  return fmt::format("world size {}, {} nodes x {} devices",
                     world_size(s),
                     s.cluster.nodes,
                     s.cluster.devices_per_node);
}

std::string precision_values(const Scenario& s) {
  return fmt::format("{} on {}", name_of(s.training.precision), s.cluster.device.name);
}

/// DDP without no_sync: every micro-batch is reduced, with the sum of the earlier ones in it.
bool reduces_what_it_accumulates(const Scenario& s) {
  const DataStrategy& data = s.strategy.data;
  const bool ddp =
      data.kind == DataKind::kDdp ||
      (data.kind == DataKind::kZero1 && data.flavour == ZeroFlavour::kZeroRedundancyOptimizer);
  return ddp && data.degree > 1 && !data.no_sync && s.training.accumulate > 1;
}

bool is_kind(const Scenario& s, DataKind kind) {
  return s.strategy.data.kind == kind;
}

constexpr LegalityRule kRules[] = {
    {"tp_divides_heads",
     "strategy.tensor.degree",
     "must divide model.heads: a query head is computed by one rank",
     [](const Scenario& s) { return is_transformer(s) && !divides(tp(s), s.model.heads); },
     tp_heads_values},
    {"tp_divides_kv_heads",
     "strategy.tensor.degree",
     "must divide model.kv_heads: each rank holds whole key-value heads; copies of a head on "
     "several ranks would need their gradients summed and are not planned",
     [](const Scenario& s) { return is_transformer(s) && !divides(tp(s), s.model.kv_heads); },
     tp_kv_heads_values},
    {"tp_divides_intermediate",
     "strategy.tensor.degree",
     "must divide model.intermediate: the MLP is split by columns, then by rows",
     [](const Scenario& s) { return is_transformer(s) && !divides(tp(s), s.model.intermediate); },
     tp_intermediate_values},
    {"tp_divides_sequence",
     "strategy.tensor.sequence_parallel",
     "needs strategy.tensor.degree to divide training.seq_len: each rank holds as many tokens",
     [](const Scenario& s) {
       return s.strategy.tensor.sequence_parallel && !divides(tp(s), sequence(s));
     },
     tp_sequence_values},
    {"mlp_without_tensor_parallel",
     "strategy.tensor.degree",
     "must be 1 for model.family \"mlp\": its lessons are about data parallelism, and BatchNorm "
     "over split columns would need statistics of its own",
     [](const Scenario& s) { return is_mlp(s) && tp(s) > 1; },
     nullptr},
    {"mlp_without_pipeline",
     "strategy.pipeline.degree",
     "must be 1 for model.family \"mlp\": BatchNorm statistics of micro-batches on different "
     "stages have no defined order",
     [](const Scenario& s) { return is_mlp(s) && pp(s) > 1; },
     nullptr},
    {"mlp_without_sequence",
     "training.seq_len",
     "must be 0 or 1 for model.family \"mlp\": a sample is one row",
     [](const Scenario& s) { return is_mlp(s) && s.training.seq_len > 1; },
     nullptr},
    {"mlp_without_recompute",
     "training.recompute",
     "must be none for model.family \"mlp\": recomputing a BatchNorm would update its running "
     "statistics twice",
     [](const Scenario& s) { return is_mlp(s) && s.training.recompute != Recompute::kNone; },
     nullptr},
    {"mlp_without_dropout",
     "training.dropout",
     "must be 0 for model.family \"mlp\": it has no dropout",
     [](const Scenario& s) { return is_mlp(s) && s.training.dropout > 0; },
     nullptr},
    {"mlp_counts_rows",
     "training.loss_mean",
     "must be mean_of_means for model.family \"mlp\": every row counts as one, so that the mean "
     "over "
     "all is the same number",
     [](const Scenario& s) { return is_mlp(s) && s.training.loss_mean == LossMean::kGlobalTokens; },
     nullptr},
    {"pp_within_layers",
     "strategy.pipeline.degree",
     "times strategy.pipeline.chunks must not exceed model.layers: every stage has a layer",
     [](const Scenario& s) { return is_transformer(s) && stage_count(s) > s.model.layers; },
     stage_values},
    {"stage_list_matches",
     "strategy.pipeline.layers_per_stage",
     "must have one entry for each of degree x chunks stages, and their sum must be model.layers",
     [](const Scenario& s) { return is_transformer(s) && stage_list_broken(s); },
     stage_values},
    {"chunks_need_pipeline",
     "strategy.pipeline.chunks",
     "must be 1 without a pipeline: virtual stages exist to interleave ranks",
     [](const Scenario& s) { return pp(s) == 1 && s.strategy.pipeline.chunks > 1; },
     nullptr},
    {"actions_need_pipeline",
     "strategy.pipeline.actions_csv",
     "needs strategy.pipeline.degree > 1",
     [](const Scenario& s) { return pp(s) == 1 && !s.strategy.pipeline.actions_csv.empty(); },
     nullptr},
    {"actions_match",
     "strategy.pipeline.actions_csv",
     "must be for the same ranks, chunks and micro-batches as degree, chunks and "
     "training.accumulate",
     file_is_for_others,
     file_values},
    {"mlp_stage_list",
     "strategy.pipeline.layers_per_stage",
     "must be empty for model.family \"mlp\", which has no blocks to spread",
     [](const Scenario& s) { return is_mlp(s) && !s.strategy.pipeline.layers_per_stage.empty(); },
     nullptr},
    {"schedule",
     "strategy.pipeline.schedule",
     "cannot be made with these numbers",
     schedule_broken,
     schedule_values},
    {"dp_on_one_node",
     "strategy.data.kind",
     "dp (DataParallel) is threads of one process: its ranks must be devices of one node",
     [](const Scenario& s) {
       return is_kind(s, DataKind::kDp) && dp(s) > s.cluster.devices_per_node;
     },
     world_values},
    {"dp_alone",
     "strategy.data.kind",
     "dp (DataParallel) replicates a whole module in every forward: it cannot be combined with "
     "tensor, pipeline or context parallel; use ddp",
     [](const Scenario& s) {
       return is_kind(s, DataKind::kDp) && (tp(s) > 1 || pp(s) > 1 || s.strategy.context > 1);
     },
     nullptr},
    {"dp_without_sync_batch_norm",
     "model.mlp_norm",
     "sync_batch_norm needs one process per device (ddp); dp (DataParallel) has one for all",
     [](const Scenario& s) {
       return is_kind(s, DataKind::kDp) && is_mlp(s) &&
              s.model.mlp_norm == MlpNormKind::kSyncBatchNorm;
     },
     nullptr},
    {"zero2_without_pipeline",
     "strategy.data.kind",
     "zero2 cannot be combined with a pipeline: it frees and reduces gradients in every "
     "micro-batch, while a pipeline accumulates them to the last (DeepSpeed refuses it too); use "
     "zero1 or fsdp",
     [](const Scenario& s) { return is_kind(s, DataKind::kZero2) && pp(s) > 1; },
     nullptr},
    {"zero3_without_pipeline",
     "strategy.data.kind",
     "zero3 cannot be combined with a pipeline: gradients are partitioned in every micro-batch "
     "(DeepSpeed refuses it too); use fsdp, which reduces in the last micro-batch",
     [](const Scenario& s) { return is_kind(s, DataKind::kZero3) && pp(s) > 1; },
     nullptr},
    {"pipeline_reduces_last",
     "strategy.data.no_sync",
     "must be true with a pipeline: gradients are reduced once, after the last micro-batch of "
     "each stage",
     [](const Scenario& s) { return pp(s) > 1 && !s.strategy.data.no_sync; },
     nullptr},
    {"tokens_reduced_once",
     "strategy.data.no_sync",
     "must be true with ddp and training.loss_mean \"global_tokens\": the all-reduce is then a "
     "sum, and summing accumulated gradients in every micro-batch counts the earlier ones again",
     [](const Scenario& s) {
       return reduces_what_it_accumulates(s) && s.training.loss_mean == LossMean::kGlobalTokens;
     },
     nullptr},
    {"tensor_reduced_once",
     "strategy.data.no_sync",
     "must be true with ddp and tensor parallelism: gradients of replicated parameters are summed "
     "over tp, and summing them in every micro-batch counts the earlier ones again",
     [](const Scenario& s) { return reduces_what_it_accumulates(s) && tp(s) > 1; },
     nullptr},
    {"context_parallel",
     "strategy.context",
     "must be 1: context parallel is not planned yet",
     [](const Scenario& s) { return s.strategy.context > 1; },
     nullptr},
    {"batch_divides",
     "training.global_batch",
     "must be a multiple of micro_batch x dp",
     batch_indivisible,
     batch_values},
    {"batch_contradicts",
     "training.accumulate",
     "contradicts training.global_batch, which must be micro_batch x accumulate x dp",
     batch_contradicts,
     batch_values},
    {"sequence_within_positions",
     "training.seq_len",
     "must not exceed model.max_position: positions beyond it have no learned embedding",
     [](const Scenario& s) {
       return is_transformer(s) && s.model.position == PositionKind::kLearned &&
              s.training.seq_len > s.model.max_position;
     },
     nullptr},
    {"tensor_size",
     "training.micro_batch",
     "times training.seq_len gives a tensor of more than 2^42 elements",
     [](const Scenario& s) { return largest_tensor(s) > kMaxTensorElements; },
     tensor_values},
    {"activation_size",
     "training.accumulate",
     "times layers and tokens gives activations of more than 2^56 elements",
     [](const Scenario& s) {
       return product({largest_tensor(s), layer_count(s), s.training.accumulate}) >
              kMaxActivationElements;
     },
     tensor_values},
    {"unused_parameters",
     "training.unused",
     "must be empty: parameters that take no part in the loss are not planned yet",
     [](const Scenario& s) { return !s.training.unused.empty(); },
     nullptr},
    {"expert_parallel",
     "strategy.expert",
     "must be 1: expert parallel is not planned yet",
     [](const Scenario& s) { return s.strategy.expert > 1; },
     nullptr},
    {"experts_without_sequence_parallel",
     "strategy.tensor.sequence_parallel",
     "must be false with experts: rows sorted by expert would have to be gathered expert by "
     "expert, "
     "which is not planned yet",
     [](const Scenario& s) { return s.model.is_moe() && s.strategy.tensor.sequence_parallel; },
     nullptr},
    {"wrap_every_module",
     "strategy.data.wrap",
     "must be block or root: units smaller than a block are not planned yet",
     [](const Scenario& s) { return s.strategy.data.wrap == WrapPolicy::kEveryModule; },
     nullptr},
    {"hybrid_reshards_fully",
     "strategy.data.reshard",
     "must be on or off with hsdp: its inner data axis is taken by the shards",
     [](const Scenario& s) {
       return is_kind(s, DataKind::kHsdp) && s.strategy.data.reshard == Reshard::kGroup;
     },
     nullptr},
    {"microbatches_numbered",
     "training.accumulate",
     "must be at most 32767: a plan numbers micro-batches in 16 bits",
     [](const Scenario& s) { return s.training.accumulate > 32767; },
     nullptr},
    {"tied_stages_numbered",
     "strategy.pipeline.degree",
     "must be at most 64 with tied embeddings: groups of stages are masks of 64 bits",
     [](const Scenario& s) { return pp(s) > 64 && s.model.tied_embeddings; },
     nullptr},
    {"world_fits_cluster",
     "cluster.nodes",
     "times cluster.devices_per_node must be at least the world size dp x tp x pp x cp",
     [](const Scenario& s) {
       return world_size(s) > product({s.cluster.nodes, s.cluster.devices_per_node});
     },
     world_values},
    {"device_has_precision",
     "training.precision",
     "is not supported by the device (its FLOP/s are 0); V100 has fp16, bf16 and tf32 begin with "
     "A100",
     [](const Scenario& s) { return !(peak_flops(s.cluster.device, s.training.precision) > 0); },
     precision_values},
};

}  // namespace

std::string LegalityRule::message(const Scenario& scenario) const {
  return values == nullptr ? std::string(reason)
                           : std::string(reason) + " (" + values(scenario) + ")";
}

std::span<const LegalityRule> legality_rules() {
  return kRules;
}

void check_legality(const Scenario& scenario, Problems& problems) {
  for (const LegalityRule& rule : kRules) {
    if (rule.broken(scenario)) {
      problems.add(rule.place, rule.message(scenario));
    }
  }
}

const LegalityRule* first_broken_rule(const Scenario& scenario) {
  for (const LegalityRule& rule : kRules) {
    if (rule.broken(scenario)) {
      return &rule;
    }
  }
  return nullptr;
}

}  // namespace lockstep
