// The one table of scenario keys. For every struct of a scenario, visit_fields() names each field
// with its key, its legal range and a line of help, in the order of the file. Reading, writing,
// `--set`, listing of keys and range checks are visitors over it, so a key cannot exist for one of
// them only. A visitor has
//
//     field(key, bool | string | enum | optional of those | vector<string>, help)
//     field(key, int64 | vector<int64>, IntRange, help)
//     field(key, double | optional<double>, RealRange, help)
//     section(key, struct or vector of structs, help)
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/limits.h"
#include "core/scenario.h"

namespace lockstep {

/// Inclusive on both sides.
struct IntRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

/// Inclusive on both sides; NaN and infinities are outside every range.
struct RealRange {
  double low = 0;
  double high = 0;
};

/// `T` or `const T`: one table serves readers and writers.
template <typename Candidate, typename T>
concept MaybeConst = std::is_same_v<std::remove_const_t<Candidate>, T>;

template <typename Visitor, MaybeConst<ModelSpec> Spec>
void visit_fields(Visitor& v, Spec& model) {
  v.field("name", model.name, "name in reports");
  v.field("family", model.family, "transformer, or mlp (given by widths)");
  v.field("layers", model.layers, IntRange{1, kMaxLayers}, "transformer layers [L]");
  v.field("hidden", model.hidden, IntRange{1, kMaxHidden}, "width of the residual stream [h]");
  v.field("heads", model.heads, IntRange{1, kMaxHeads}, "query heads [a]");
  v.field("kv_heads", model.kv_heads, IntRange{1, kMaxHeads}, "key and value heads [k]");
  v.field("head_dim", model.head_dim, IntRange{1, kMaxHeadDim}, "elements of one head");
  v.field("intermediate",
          model.intermediate,
          IntRange{1, kMaxIntermediate},
          "width of the MLP, per expert [f]");
  v.field("vocab", model.vocab, IntRange{2, kMaxVocab}, "tokens of the vocabulary [V]");
  v.field("max_position", model.max_position, IntRange{1, kMaxSequence}, "longest sequence");
  v.field("norm", model.norm, "normalisation of the residual stream");
  v.field("activation", model.activation, "gelu and relu: two MLP matrices; swiglu: three");
  v.field("position", model.position, "how positions enter the model");
  v.field("qkv_bias", model.qkv_bias, "biases of the q, k and v projections");
  v.field("output_bias", model.output_bias, "bias of the attention output projection");
  v.field("mlp_bias", model.mlp_bias, "biases of the MLP");
  v.field("qk_norm", model.qk_norm, "RMSNorm of width head_dim on q and k (Qwen3)");
  v.field("tied_embeddings", model.tied_embeddings, "the head uses the embedding matrix");
  v.field("norm_epsilon", model.norm_epsilon, RealRange{0, 1}, "added under the square root");
  v.field("rope_theta", model.rope_theta, RealRange{1, 1e12}, "base of the rotary frequencies");
  v.field("sliding_window",
          model.sliding_window,
          IntRange{0, kMaxSequence},
          "attention sees this many tokens back; 0 = all");
  v.field("experts", model.experts, IntRange{0, kMaxExperts}, "experts per layer; 0 = dense");
  v.field("experts_per_token",
          model.experts_per_token,
          IntRange{0, kMaxExperts},
          "experts that each token visits");
  v.field("widths", model.widths, IntRange{1, kMaxHidden}, "mlp family: input, hidden, classes");
  v.field("mlp_norm", model.mlp_norm, "mlp family: norm between Linear and ReLU");
  v.field("assumptions", model.assumptions, "what a loader assumed because the file was silent");
}

template <typename Visitor, MaybeConst<DeviceSpec> Spec>
void visit_fields(Visitor& v, Spec& device) {
  const RealRange rate{0, kMaxRate};
  v.field("name", device.name, "name in reports");
  v.field("fp64_flops", device.fp64_flops, rate, "peak dense FLOP/s; 0 = not supported");
  v.field("fp32_flops", device.fp32_flops, rate, "peak dense FLOP/s; 0 = not supported");
  v.field("tf32_flops", device.tf32_flops, rate, "peak dense FLOP/s; 0 = not supported");
  v.field("bf16_flops", device.bf16_flops, rate, "peak dense FLOP/s; 0 = not supported");
  v.field("fp16_flops", device.fp16_flops, rate, "peak dense FLOP/s; 0 = not supported");
  v.field("fp8_flops", device.fp8_flops, rate, "peak dense FLOP/s; 0 = not supported");
  v.field("matmul_fraction",
          device.matmul_fraction,
          RealRange{1e-3, 1},
          "of the peak that the best matrix product reaches");
  v.field("attention_fraction",
          device.attention_fraction,
          RealRange{1e-3, 1},
          "of the peak that fused attention's forward reaches");
  v.field("special_rate", device.special_rate, rate, "exponentials per second; 0 = no limit");
  v.field("speed_beside_communication",
          device.speed_beside_communication,
          RealRange{0, 1},
          "of compute, where cores are not shared; 0 = by the multiprocessors that are held");
  v.field("power_watts", device.power_watts, RealRange{0, 1e6}, "what it may draw; 0 = no limit");
  v.field("multiprocessors",
          device.multiprocessors,
          IntRange{1, 1 << 20},
          "that work on tiles of a product at the same time");
  v.field("memory_bytes", device.memory_bytes, IntRange{1, kMaxDeviceBytes}, "usable memory");
  v.field("memory_bandwidth", device.memory_bandwidth, RealRange{1, kMaxRate}, "byte/s");
  v.field(
      "launch_overhead_s", device.launch_overhead_s, RealRange{0, 1}, "host time per operation");
  v.field("context_bytes",
          device.context_bytes,
          IntRange{0, kMaxDeviceBytes},
          "driver context and libraries, outside any allocator");
}

template <typename Visitor, MaybeConst<LinkSpec> Spec>
void visit_fields(Visitor& v, Spec& link) {
  v.field("kind", link.kind, "what the link is made of");
  v.field("bandwidth", link.bandwidth, RealRange{1, kMaxRate}, "byte/s in one direction");
  v.field("latency_s", link.latency_s, RealRange{0, 1}, "seconds of one hop");
}

template <typename Visitor, MaybeConst<ClusterSpec> Spec>
void visit_fields(Visitor& v, Spec& cluster) {
  const IntRange count{1, kMaxWorldSize};
  v.field("name", cluster.name, "name in reports");
  v.section("device", cluster.device, "one device");
  v.field("nodes", cluster.nodes, count, "nodes: the devices that intra_node connects");
  v.field("devices_per_node", cluster.devices_per_node, count, "devices of a node");
  v.field("cores_per_node",
          cluster.cores_per_node,
          IntRange{0, kMaxWorldSize},
          "processor cores that its devices share; 0 = each device has its own");
  v.section("intra_node", cluster.intra_node, "link of a device inside its node");
  v.section("inter_node", cluster.inter_node, "one network card between nodes");
  v.field("nics_per_node", cluster.nics_per_node, count, "network cards of a node");
  v.field("sources", cluster.sources, "where each figure comes from");
}

template <typename Visitor, MaybeConst<UnusedParameters> Spec>
void visit_fields(Visitor& v, Spec& unused) {
  v.field("layer", unused.layer, IntRange{0, kMaxLayers}, "layer that takes no part in the loss");
  v.field("ranks", unused.ranks, IntRange{0, kMaxWorldSize}, "data-parallel coordinates; [] = all");
  v.field("iterations", unused.iterations, IntRange{0, kMaxGlobalBatch}, "iterations; [] = all");
}

template <typename Visitor, MaybeConst<TrainingSpec> Spec>
void visit_fields(Visitor& v, Spec& training) {
  v.field("seq_len", training.seq_len, IntRange{0, kMaxSequence}, "tokens [s]; 0 = max_position");
  v.field("micro_batch",
          training.micro_batch,
          IntRange{1, kMaxMicroBatch},
          "samples per rank and micro-batch [b]");
  v.field("accumulate",
          training.accumulate,
          IntRange{1, kMaxAccumulate},
          "micro-batches per step and data-parallel rank [M]");
  v.field("global_batch",
          training.global_batch,
          IntRange{0, kMaxGlobalBatch},
          "samples per step over all ranks; 0 = micro_batch x accumulate x dp");
  v.field("precision", training.precision, "storage and arithmetic of parameters and activations");
  v.field("gradient_dtype", training.gradient_dtype, "null = the strategy's default");
  v.field("reduce_dtype", training.reduce_dtype, "null = the strategy's default");
  v.field("optimizer", training.optimizer, "optimizer");
  v.field("optimizer_state", training.optimizer_state, "lazy: allocated in the first step");
  v.field("learning_rate", training.learning_rate, RealRange{0, 1e6}, "step size");
  v.field("warmup_steps",
          training.warmup_steps,
          IntRange{0, kMaxGlobalBatch},
          "steps over which the learning rate rises");
  v.field("final_learning_rate",
          training.final_learning_rate,
          RealRange{0, 1},
          "learning rate at the end of a run, of learning_rate (cosine); 1 = constant");
  v.field("weight_decay", training.weight_decay, RealRange{0, 1e6}, "decoupled weight decay");
  v.field("momentum", training.momentum, RealRange{0, 1}, "of the momentum optimizer");
  v.field("beta1", training.beta1, RealRange{0, 1}, "AdamW: decay of the first moment");
  v.field("beta2", training.beta2, RealRange{0, 1}, "AdamW: decay of the second moment");
  v.field("epsilon", training.epsilon, RealRange{0, 1}, "AdamW: added to the denominator");
  v.field("recompute", training.recompute, "which activations are computed again in backward");
  v.field("recompute_every",
          training.recompute_every,
          IntRange{1, kMaxLayers},
          "with full: every k-th layer");
  v.field("attention", training.attention, "plain keeps the scores, flash does not");
  v.field("dropout", training.dropout, RealRange{0, 0.999}, "probability; 0 = off");
  v.field("clip_norm", training.clip_norm, RealRange{0, 1e30}, "largest gradient norm; 0 = off");
  v.field("loss_scaling", training.loss_scaling, "null = only for fp16");
  v.field("loss_mean", training.loss_mean, "how the losses of ranks become one number");
  v.section("unused", training.unused, "parameters that take no part in the loss");
  v.field("seed", training.seed, IntRange{0, kSaturated}, "of initial weights, data and dropout");
}

template <typename Visitor, MaybeConst<DataStrategy> Spec>
void visit_fields(Visitor& v, Spec& data) {
  v.field("kind", data.kind, "how replicas share the work and the state");
  v.field("degree", data.degree, IntRange{1, kMaxWorldSize}, "dp: replicas x shards");
  v.field("replicate", data.replicate, IntRange{1, kMaxWorldSize}, "hsdp: outer replicas");
  v.field("flavour", data.flavour, "zero1..3: whose implementation");
  v.field("bucket_mib",
          data.bucket_mib,
          RealRange{1e-6, 1 << 20},
          "gradient bucket; null = the strategy's default (ddp: 25, the first 1)");
  v.field("ideal", data.ideal, "ddp: even buckets from the first iteration on");
  v.field("find_unused_parameters", data.find_unused_parameters, "ddp: as PyTorch's flag");
  v.field("static_graph", data.static_graph, "ddp: as PyTorch's flag");
  v.field("gradient_as_bucket_view", data.gradient_as_bucket_view, "ddp: as PyTorch's flag");
  v.field("no_sync", data.no_sync, "reduce in the last micro-batch only");
  v.field("broadcast_buffers", data.broadcast_buffers, "ddp: as PyTorch's flag");
  v.field("wrap", data.wrap, "fsdp, hsdp, zero3: what is gathered together");
  v.field("reshard", data.reshard, "fsdp, hsdp: free parameters after forward");
  v.field("reshard_group",
          data.reshard_group,
          IntRange{0, kMaxWorldSize},
          "ranks that hold one copy between forward and backward, for reshard \"group\"");
  v.field("backward_prefetch", data.backward_prefetch, "gather the next unit before it is needed");
}

template <typename Visitor, MaybeConst<TensorStrategy> Spec>
void visit_fields(Visitor& v, Spec& tensor) {
  v.field("degree", tensor.degree, IntRange{1, kMaxWorldSize}, "tp: ranks that split each matrix");
  v.field("sequence_parallel", tensor.sequence_parallel, "shard activations between the matrices");
  v.field("save_gathered_input", tensor.save_gathered_input, "do not gather again in backward");
}

template <typename Visitor, MaybeConst<PipelineStrategy> Spec>
void visit_fields(Visitor& v, Spec& pipeline) {
  v.field("degree", pipeline.degree, IntRange{1, kMaxStages}, "pp: ranks that split the layers");
  v.field("schedule", pipeline.schedule, "order of the micro-batches");
  v.field("chunks", pipeline.chunks, IntRange{1, kMaxStages}, "virtual stages per rank");
  v.field("layers_per_stage",
          pipeline.layers_per_stage,
          IntRange{1, kMaxLayers},
          "uneven stages in model order; [] = as even as possible");
  v.field("actions_csv", pipeline.actions_csv, "PyTorch action CSV that replaces the schedule");
}

template <typename Visitor, MaybeConst<StrategySpec> Spec>
void visit_fields(Visitor& v, Spec& strategy) {
  v.section("data", strategy.data, "data parallel");
  v.section("tensor", strategy.tensor, "tensor parallel");
  v.section("pipeline", strategy.pipeline, "pipeline parallel");
  v.field("context", strategy.context, IntRange{1, kMaxWorldSize}, "context parallel degree");
  v.field("expert", strategy.expert, IntRange{1, kMaxWorldSize}, "expert parallel degree");
}

template <typename Visitor, MaybeConst<Scenario> Spec>
void visit_fields(Visitor& v, Spec& scenario) {
  v.field("name", scenario.name, "name in reports");
  v.section("model", scenario.model, "what is trained");
  v.section("cluster", scenario.cluster, "the machine");
  v.section("training", scenario.training, "how it is trained");
  v.section("strategy", scenario.strategy, "how the work is split over ranks");
}

}  // namespace lockstep
