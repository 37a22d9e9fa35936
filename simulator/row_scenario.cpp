#include "simulator/row_scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "core/cluster_presets.h"
#include "core/error.h"
#include "core/layout.h"
#include "core/memory_report.h"
#include "core/report.h"

namespace lockstep::sim {
namespace {

constexpr double kGigabit = 1e9 / 8;
/// One bucket for all gradients, full when backward ends.
constexpr double kWholeModelMib = 65536;
constexpr double kDropout = 0.1;

[[noreturn]] void refuse(const std::string& reason) {
  throw NotSupportedError("validate", reason);
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::int64_t need(const std::optional<std::int64_t>& value, std::string_view column) {
  if (!value) {
    refuse(fmt::format("{} is not printed", column));
  }
  return *value;
}

// ---- machine -----------------------------------------------------------------------------------

void apply_site(const TrainingRow& row, const Machines& machines, ClusterSpec& cluster) {
  for (const SiteNetwork& site : machines.sites) {
    if (row.source.starts_with(site.source) && row.hardware.starts_with(site.hardware)) {
      cluster.nics_per_node = site.nics_per_node;
      cluster.inter_node.bandwidth = site.nic_gigabits * kGigabit;
      return;
    }
  }
}

void apply_kernel(const TrainingRow& row, const Machines& machines, ClusterSpec& cluster) {
  for (const AttentionKernel& kernel : machines.kernels) {
    if (row.attention.starts_with(kernel.attention) && row.hardware.starts_with(kernel.hardware)) {
      cluster.device.attention_fraction = kernel.fraction;
      return;
    }
  }
}

void apply_context(const TrainingRow& row, const Machines& machines, Scenario& scenario) {
  if (scenario.training.attention != AttentionKind::kPlain) {
    return;
  }
  for (const EagerContext& context : machines.contexts) {
    if (row.hardware.starts_with(context.hardware)) {
      scenario.cluster.device.context_bytes = context.mebibytes << 20;
      return;
    }
  }
}

ClusterSpec cluster_of(const TrainingRow& row, const Machines& machines) {
  const auto known = std::find_if(
      machines.hardware.begin(), machines.hardware.end(), [&row](const HardwareName& it) {
        return it.hardware == row.hardware;
      });
  if (known == machines.hardware.end()) {
    refuse(fmt::format("no preset for hardware \"{}\"", row.hardware));
  }
  std::optional<ClusterSpec> cluster = find_cluster_preset(known->preset);
  if (!cluster) {
    refuse(unknown_cluster_message(known->preset));
  }
  const std::int64_t preset_devices = cluster->devices_per_node;
  apply_site(row, machines, *cluster);
  apply_kernel(row, machines, *cluster);
  const std::int64_t gpus = need(row.dp, "dp") * need(row.tp, "tp") * need(row.pp, "pp");
  const std::int64_t printed = row.gpus_per_node.value_or(preset_devices);
  // An NVLink domain of several trays is one node, whatever the table calls a node.
  const std::int64_t per_node = preset_devices > 16 ? preset_devices : printed;
  cluster->devices_per_node = std::min(gpus, per_node);
  cluster->nodes = ceil_divide(gpus, cluster->devices_per_node);
  return *cluster;
}

// ---- model -------------------------------------------------------------------------------------

ModelSpec form_of(const TrainingRow& row, bool gated, bool tied) {
  ModelSpec model;
  model.name = row.model;
  model.layers = need(row.layers, "layers");
  model.hidden = need(row.hidden, "hidden");
  model.heads = need(row.heads, "heads");
  model.kv_heads = row.kv_heads.value_or(model.heads);
  if (model.hidden % model.heads != 0) {
    refuse("heads do not divide hidden");
  }
  model.head_dim = model.hidden / model.heads;
  model.vocab = need(row.vocab, "vocab");
  model.max_position = need(row.seq_len, "seq_len");
  model.intermediate = row.ffn.value_or(4 * model.hidden);
  model.tied_embeddings = tied;
  if (gated) {
    model.norm = NormKind::kRmsNorm;
    model.activation = ActivationKind::kSwiGlu;
    model.position = PositionKind::kRope;
    model.qkv_bias = model.output_bias = model.mlp_bias = false;
  }
  return model;
}

/// The form whose number of parameters is nearest to the printed one; without a printed number the
/// GPT form where f = 4h, else the gated one.
ModelSpec model_of(const TrainingRow& row) {
  if (!row.parameters_billion) {
    const std::int64_t hidden = need(row.hidden, "hidden");
    const bool gated = row.ffn && *row.ffn != 4 * hidden;
    return form_of(row, gated, !gated);
  }
  ModelSpec best;
  double least = -1;
  // Order breaks ties: the GPT form is tied, the gated one is not.
  for (const auto& [gated, tied] : {std::pair(false, true),
                                    std::pair(true, false),
                                    std::pair(false, false),
                                    std::pair(true, true)}) {
    const ModelSpec model = form_of(row, gated, tied);
    const double count = static_cast<double>(parameter_count(model)) / 1e9;
    const double error = std::abs(count / *row.parameters_billion - 1);
    if (least < 0 || error < least - 1e-3) {
      least = error;
      best = model;
    }
  }
  return best;
}

// ---- training and strategy ---------------------------------------------------------------------

Precision precision_of(const TrainingRow& row) {
  if (row.precision == "fp32") {
    return Precision::kFp32;
  }
  if (row.precision == "tf32") {
    return Precision::kTf32;
  }
  if (row.precision == "fp16") {
    return Precision::kFp16;
  }
  // fp8 and below: matrix products in 8 bits are not simulated; predicted as bf16 on request.
  return Precision::kBf16;
}

/// Named by the row. Where it is not: gated models are younger than fused attention, and who ran
/// another form of model with it says so.
bool fuses_attention(const TrainingRow& row, const ModelSpec& model) {
  if (row.attention.empty()) {
    return model.gated_mlp();
  }
  return contains(row.attention, "flash") || contains(row.attention, "sdpa") ||
         contains(row.attention, "cudnn") || contains(row.attention, "te-fused");
}

void set_recompute(const TrainingRow& row, Scenario& scenario) {
  TrainingSpec& training = scenario.training;
  // What was run must have fitted.
  const auto fits = [&scenario] {
    return counted_peak_bytes(resolved(scenario)) <= scenario.cluster.device.memory_bytes;
  };
  if (row.recompute == "full" || (row.recompute.empty() && !fits())) {
    training.recompute = Recompute::kFull;
  } else if (row.recompute == "selective") {
    training.recompute = Recompute::kSelective;
    if (training.attention == AttentionKind::kFlash && scenario.strategy.tensor.degree == 1) {
      // Per-operation checkpointing of FSDP recipes: every second product is made again.
      training.recompute = Recompute::kFull;
      training.recompute_every = 2;
    }
  }
}

TrainingSpec training_of(const TrainingRow& row, const ModelSpec& model) {
  TrainingSpec training;
  training.seq_len = need(row.seq_len, "seq_len");
  training.micro_batch = need(row.micro_batch, "micro_batch");
  const std::int64_t samples = training.micro_batch * need(row.dp, "dp");
  const std::int64_t global = row.global_batch.value_or(samples * need(row.pp, "pp"));
  training.accumulate = std::max<std::int64_t>(1, (global + samples / 2) / samples);
  training.precision = precision_of(row);
  training.attention = fuses_attention(row, model) ? AttentionKind::kFlash : AttentionKind::kPlain;
  // Recipes of the time before fused attention drop 10 % (GPT-3, BERT); later ones nothing.
  training.dropout = training.attention == AttentionKind::kPlain ? kDropout : 0;
  return training;
}

void set_data_parallel(const TrainingRow& row, Scenario& scenario) {
  DataStrategy& data = scenario.strategy.data;
  data.degree = *row.dp;
  const bool model_parallel = *row.tp > 1 || *row.pp > 1;
  const bool buffers = model_parallel && data.degree == 1;  // Megatron-LM's, kept all the time
  if (row.sharding == "zero1" || (row.sharding == "zero2" && model_parallel) || buffers) {
    data.kind = DataKind::kZero1;
    data.flavour = ZeroFlavour::kMegatron;
  } else if (row.sharding == "fsdp" || row.sharding == "zero2") {
    data.kind = DataKind::kFsdp;
    data.reshard = row.sharding == "zero2" ? Reshard::kOff : Reshard::kOn;
  } else if (row.sharding == "zero3") {
    data.kind = model_parallel ? DataKind::kFsdp : DataKind::kZero3;
    data.flavour = ZeroFlavour::kDeepSpeed;
  } else if (row.sharding == "hsdp") {
    data.kind = DataKind::kHsdp;
    data.replicate =
        std::max<std::int64_t>(1, data.degree * *row.tp / scenario.cluster.devices_per_node);
  } else if (row.sharding == "ddp" || row.sharding == "none") {
    data.kind = DataKind::kDdp;
    if (model_parallel) {
      data.bucket_mib = kWholeModelMib;
    }
  } else {
    refuse(fmt::format("sharding \"{}\" is not known", row.sharding));
  }
}

void set_strategy(const TrainingRow& row, Scenario& scenario) {
  StrategySpec& strategy = scenario.strategy;
  strategy.tensor.degree = *row.tp;
  strategy.tensor.sequence_parallel = *row.tp > 1 && row.sp.value_or(0) > 0;
  strategy.pipeline.degree = *row.pp;
  strategy.pipeline.chunks = *row.pp > 1 ? row.vpp.value_or(1) : 1;
  strategy.pipeline.schedule =
      strategy.pipeline.chunks > 1 ? ScheduleKind::kInterleaved : ScheduleKind::k1F1B;
  set_data_parallel(row, scenario);
}

}  // namespace

Scenario scenario_of(const TrainingRow& row, const Machines& machines) {
  if (row.cp.value_or(1) != 1 || row.ep.value_or(1) != 1) {
    refuse("context or expert parallelism is not planned yet");
  }
  if (!row.finetune.empty() && row.finetune != "full") {
    refuse("adapters are trained, not the model");
  }
  if (!row.offload.empty()) {
    refuse("states lie on the host");
  }
  Scenario scenario;
  scenario.name = row.id;
  scenario.cluster = cluster_of(row, machines);
  scenario.model = model_of(row);
  scenario.training = training_of(row, scenario.model);
  apply_context(row, machines, scenario);
  set_strategy(row, scenario);
  set_recompute(row, scenario);
  scenario = resolved(scenario);
  const Problems found = validate(scenario);
  if (!found.empty()) {
    refuse(found.one_line());
  }
  return scenario;
}

double claimed_fraction(const TrainingRow& row, const Scenario& scenario) {
  if (!row.step_time_s) {
    return 0;
  }
  const ModelSpec& model = scenario.model;
  const bool learned = model.position == PositionKind::kLearned;
  const std::int64_t tables = (model.tied_embeddings ? 1 : 2) * model.vocab * model.hidden +
                              (learned ? model.max_position * model.hidden : 0);
  const auto parameters = static_cast<double>(parameter_count(model) - tables);
  const double tokens = static_cast<double>(samples_per_step(scenario)) *
                        static_cast<double>(scenario.training.seq_len);
  const double rate = peak_flops(scenario.cluster.device, scenario.training.precision) *
                      static_cast<double>(scenario.strategy.world_size());
  return 6 * parameters * tokens / (*row.step_time_s * rate);
}

std::string left_out(const TrainingRow& row, ValidationTable table) {
  const std::pair<const char*, bool> core[] = {{"layers", row.layers.has_value()},
                                               {"hidden", row.hidden.has_value()},
                                               {"heads", row.heads.has_value()},
                                               {"vocab", row.vocab.has_value()},
                                               {"seq_len", row.seq_len.has_value()},
                                               {"micro_batch", row.micro_batch.has_value()},
                                               {"dp", row.dp.has_value()},
                                               {"tp", row.tp.has_value()},
                                               {"pp", row.pp.has_value()},
                                               {"sharding", !row.sharding.empty()},
                                               {"precision", !row.precision.empty()}};
  for (const auto& [name, present] : core) {
    if (!present) {
      return fmt::format("{} is not printed", name);
    }
  }
  if (table == ValidationTable::kTraining) {
    if (!row.global_batch) {
      return "global_batch_seqs is not printed";
    }
    if (row.recompute.empty()) {
      return "recompute is not printed";
    }
    if (!row.vpp) {
      return "vpp is not printed";
    }
    if (!row.step_time_s) {
      return "no step time is printed";
    }
  } else if (!row.peak_gib) {
    return "no peak is printed";
  }
  if (row.cp.value_or(1) != 1 || row.ep.value_or(1) != 1) {
    return "cp or ep is not 1";
  }
  const std::string_view precision = row.precision;
  if (precision != "fp32" && precision != "tf32" && precision != "bf16" && precision != "fp16") {
    return fmt::format("precision {}", precision);
  }
  if (!row.finetune.empty() && row.finetune != "full") {
    return fmt::format("not all parameters are trained ({})", row.finetune);
  }
  return row.offload.empty() ? "" : "states lie on the host";
}

}  // namespace lockstep::sim
