// Volumes: what every rank sends in a step, by kind and group, equals the closed forms of
// tests/support/volume_forms.h to the byte, for every strategy and the usual combinations.
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/model_presets.h"
#include "core/names.h"
#include "core/plan_text.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/scenarios.h"
#include "tests/support/volume_forms.h"

namespace lockstep {
namespace {

using test::Volumes;

std::int64_t buffer_bytes(const Plan& plan, const Operation& op) {
  const bool parts =
      op.kind == OperationKind::kCollective &&
      (op.collective == Collective::kAllGather || op.collective == Collective::kReduceScatter);
  const std::int64_t members =
      parts ? plan.mesh.count(plan.communicators[op.communicator].axes) : 1;
  return op.elements * members * size_of(op.dtype);
}

std::map<std::string, std::int64_t> volumes_of(const Plan& plan, int class_index) {
  std::map<std::string, std::int64_t> bytes;
  const Section& steady = plan.step(static_cast<int>(plan.variant_of_iteration.size()));
  for (const Operation& op : steady.programs[static_cast<std::size_t>(class_index)].operations) {
    const bool collective = op.kind == OperationKind::kCollective;
    if (!collective && op.kind != OperationKind::kSend) {
      continue;
    }
    const std::string key = fmt::format("{} {}{}",
                                        collective ? name_of(op.collective) : name_of(op.kind),
                                        group_text(plan.mesh, plan.communicators[op.communicator]),
                                        op.has(kControl) ? " control" : "");
    bytes[key] += buffer_bytes(plan, op);
  }
  return bytes;
}

std::string text_of(const std::map<std::string, std::int64_t>& volumes) {
  std::string text;
  for (const auto& [key, bytes] : volumes) {
    text += fmt::format("{} {}\n", key, bytes);
  }
  return text;
}

std::map<std::string, std::int64_t> totals(const Volumes& volumes) {
  std::map<std::string, std::int64_t> sums;
  for (const auto& [key, terms] : volumes) {
    sums[key] = test::total(terms);
  }
  return sums;
}

template <typename Change>
void check_volumes(const Scenario& base, const std::string& name, Change&& change) {
  Scenario scenario = base;
  change(scenario);
  scenario = resolved(scenario);
  require_valid(scenario);
  const Plan plan = make_plan(scenario);
  for (int stage = 0; stage < plan.mesh.size(Axis::kPipeline); ++stage) {
    const Volumes expected = test::expected_volumes(scenario, stage);
    INFO(name << ", stage " << stage << "\n" << test::text_of(expected));
    // Classes of one stage (owners) send alike.
    const int of_stage = plan.class_count() / plan.mesh.size(Axis::kPipeline);
    for (int c = stage * of_stage; c < (stage + 1) * of_stage; ++c) {
      CHECK(text_of(volumes_of(plan, c)) == text_of(totals(expected)));
    }
  }
}

void set_data(Scenario& s, DataKind kind, std::int64_t degree) {
  s.strategy.data.kind = kind;
  s.strategy.data.degree = degree;
}

const std::vector<Precision> kPrecisions = {
    Precision::kFp32, Precision::kFp64, Precision::kBf16, Precision::kFp16, Precision::kAutocast};

}  // namespace

TEST_CASE("volumes of DDP: gradients once a step, or in every micro-batch without no_sync") {
  for (const Precision precision : kPrecisions) {
    for (const std::int64_t ranks : {2, 3, 5}) {
      for (const bool no_sync : {true, false}) {
        check_volumes(
            test::tiny_gpt(), fmt::format("{} {}", name_of(precision), ranks), [&](Scenario& s) {
              set_data(s, DataKind::kDdp, ranks);
              s.training.precision = precision;
              s.training.accumulate = 3;
              s.training.clip_norm = 1;
              s.strategy.data.no_sync = no_sync;
              s.strategy.data.find_unused_parameters = ranks == 3;
              s.strategy.data.gradient_as_bucket_view = ranks == 5;
              s.strategy.data.bucket_mib = 0.004;
            });
      }
    }
  }
}

TEST_CASE("volumes of batch norm: buffers before forward, synchronised statistics both ways") {
  for (const MlpNormKind norm : {MlpNormKind::kBatchNorm, MlpNormKind::kSyncBatchNorm}) {
    for (const bool buffers : {true, false}) {
      check_volumes(test::tiny_mlp(norm), "batch norm", [&](Scenario& s) {
        set_data(s, DataKind::kDdp, 3);
        s.training.accumulate = 2;
        s.strategy.data.broadcast_buffers = buffers;
      });
    }
  }
}

TEST_CASE("volumes of DataParallel: the module in every forward, inputs, outputs, gradients") {
  for (const std::int64_t ranks : {2, 3, 5}) {
    check_volumes(test::tiny_mlp(), fmt::format("{} devices", ranks), [&](Scenario& s) {
      set_data(s, DataKind::kDp, ranks);
      s.training.accumulate = 2;
      s.training.clip_norm = 1;
    });
  }
}

TEST_CASE("volumes of ZeRO 1, 2 and 3 in every flavour, padding named") {
  for (const Precision precision : kPrecisions) {
    for (const DataKind kind : {DataKind::kZero1, DataKind::kZero2, DataKind::kZero3}) {
      for (const NameRow<ZeroFlavour>& flavour : name_table<ZeroFlavour>()) {
        for (const std::int64_t ranks : {2, 3, 5}) {
          Scenario scenario = ranks == 3 ? test::tiny_llama() : test::tiny_gpt();
          set_data(scenario, kind, ranks);
          scenario.strategy.data.flavour = flavour.value;
          scenario.training.precision = precision;
          scenario.training.accumulate = 2;
          scenario.training.clip_norm = 1;
          if (!validate(resolved(scenario)).empty()) {
            continue;
          }
          check_volumes(
              scenario,
              fmt::format("{} {} {} {}", name_of(kind), flavour.name, name_of(precision), ranks),
              [](Scenario&) {});
        }
      }
    }
  }
}

TEST_CASE("volumes of FSDP and HSDP: the root once, blocks twice, shards padded row by row") {
  for (const Precision precision : kPrecisions) {
    for (const Reshard reshard : {Reshard::kOn, Reshard::kOff, Reshard::kGroup}) {
      for (const std::int64_t ranks : {3, 4, 5}) {
        check_volumes(ranks == 4 ? test::tiny_llama() : test::tiny_gpt(),
                      fmt::format("{} {}", name_of(reshard), ranks),
                      [&](Scenario& s) {
                        set_data(s, DataKind::kFsdp, ranks);
                        s.strategy.data.reshard =
                            reshard == Reshard::kGroup && ranks != 4 ? Reshard::kOn : reshard;
                        s.strategy.data.reshard_group =
                            s.strategy.data.reshard == Reshard::kGroup ? 2 : 0;
                        s.training.precision = precision;
                        s.training.accumulate = 2;
                        s.training.clip_norm = 1;
                      });
      }
    }
    check_volumes(test::tiny_gpt(), "hsdp", [&](Scenario& s) {
      set_data(s, DataKind::kHsdp, 6);
      s.strategy.data.replicate = 2;
      s.training.precision = precision;
      s.training.accumulate = 2;
      s.training.clip_norm = 1;
    });
  }
}

TEST_CASE("volumes of tensor parallelism: activations, embedding, head, loss, replicated weights") {
  for (const bool sequence : {false, true}) {
    for (const bool save : {false, sequence}) {
      for (const Recompute recompute :
           {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        for (const DataKind kind : {DataKind::kDdp, DataKind::kZero2, DataKind::kFsdp}) {
          check_volumes(
              kind == DataKind::kFsdp ? test::tiny_llama() : test::tiny_gpt(),
              fmt::format("sp {} save {} {} {}", sequence, save, name_of(recompute), name_of(kind)),
              [&](Scenario& s) {
                set_data(s, kind, kind == DataKind::kZero2 ? 3 : 2);
                s.strategy.tensor.degree = kind == DataKind::kFsdp ? 2 : 3;
                s.strategy.tensor.sequence_parallel = sequence;
                s.strategy.tensor.save_gathered_input = save;
                s.training.recompute = recompute;
                s.training.recompute_every = recompute == Recompute::kFull ? 2 : 1;
                s.model.layers = 3;
                s.training.accumulate = 2;
                s.training.clip_norm = 1;
                s.training.precision = Precision::kBf16;
              });
        }
      }
    }
  }
}

TEST_CASE("volumes of head norms and experts under tensor parallelism") {
  check_volumes(test::tiny_llama(), "head norms", [](Scenario& s) {
    s.strategy.tensor.degree = 2;
    s.model.qk_norm = true;
    s.training.accumulate = 2;
  });
  check_volumes(test::tiny_llama(), "experts", [](Scenario& s) {
    s.model.experts = 3;
    s.model.experts_per_token = 2;
    s.strategy.tensor.degree = 2;
    set_data(s, DataKind::kDdp, 3);
    s.training.clip_norm = 1;
  });
}

TEST_CASE("volumes of pipelines: boundaries, tied copies, norm over stages, loss scale") {
  for (const DataKind kind : {DataKind::kDdp, DataKind::kZero1, DataKind::kFsdp}) {
    for (const bool tied : {true, false}) {
      for (const std::int64_t tensor : {1, 3}) {
        for (const ZeroFlavour flavour :
             {ZeroFlavour::kPaper, ZeroFlavour::kMegatron, ZeroFlavour::kDeepSpeed}) {
          check_volumes(
              test::tiny_gpt(),
              fmt::format("{} tied {} tp {} {}", name_of(kind), tied, tensor, name_of(flavour)),
              [&](Scenario& s) {
                set_data(s, kind, 3);
                s.strategy.data.flavour =
                    kind == DataKind::kZero1 ? flavour : s.strategy.data.flavour;
                s.strategy.tensor.degree = tensor;
                s.strategy.tensor.sequence_parallel = tensor > 1;
                s.strategy.pipeline.degree = 3;
                s.strategy.pipeline.layers_per_stage = {1, 2, 1};
                s.model.layers = 4;
                s.model.tied_embeddings = tied;
                s.training.accumulate = 4;
                s.training.clip_norm = 1;
                s.training.precision = Precision::kFp16;
                s.training.loss_mean = LossMean::kGlobalTokens;
              });
        }
      }
    }
  }
}

TEST_CASE("volumes of virtual stages: one message for every border between two ranks") {
  // By schedule and rank: borders that activations cross from there, borders that gradients cross.
  // Interleaved: stages 0 2 | 1 3; the V of zbv: 0 3 | 1 2, whose 1 to 2 stays on a rank.
  struct Row {
    ScheduleKind schedule;
    int rank;
    std::int64_t borders;
  };
  const Row rows[] = {{ScheduleKind::kInterleaved, 0, 2 + 1},
                      {ScheduleKind::kInterleaved, 1, 1 + 2},
                      {ScheduleKind::kLoopedBfs, 0, 2 + 1},
                      {ScheduleKind::kInterleavedZb, 1, 1 + 2},
                      {ScheduleKind::kZbV, 0, 1 + 1},
                      {ScheduleKind::kZbV, 1, 1 + 1}};
  for (const Row& row : rows) {
    Scenario scenario = test::tiny_gpt();
    scenario.model.layers = 4;
    scenario.strategy.pipeline = {2, row.schedule, 2, {}, {}};
    scenario.training.accumulate = 4;
    INFO(name_of(row.schedule) << ", rank " << row.rank);
    const Plan plan = make_plan(resolved(scenario));
    const std::int64_t message = 2 * 12 * 12 * 4;  // samples, tokens, width, fp32
    CHECK(volumes_of(plan, row.rank).at("send pp") == 4 * row.borders * message);
  }
}

TEST_CASE("volumes of Llama 3.1 8B under FSDP: the root, 13.1 % of it, is gathered once") {
  // 8,030,261,248 parameters, 1,050,677,248 of them in embedding, head and final norm; 8 divides
  // every first dimension, so there is no padding. bf16 parameters, fp32 reduction.
  Scenario scenario;
  scenario.model = *find_model_preset("llama-3.1-8b");
  set_data(scenario, DataKind::kFsdp, 8);
  scenario.training.seq_len = 8192;
  scenario.training.accumulate = 2;
  scenario.training.clip_norm = 0;
  scenario.cluster.device.bf16_flops = 1;
  const Plan plan = make_plan(resolved(scenario));
  const std::map<std::string, std::int64_t> bytes = volumes_of(plan, 0);
  CHECK(bytes.at("all_gather dp") == 2 * (2 * 8'030'261'248 - 1'050'677'248) * 2);
  CHECK(bytes.at("reduce_scatter dp") == 2 * 8'030'261'248 * 4);
}

TEST_CASE("volumes of GPT-3 over 8 tensor-parallel ranks: 2 + 2 all-reduces of 2sbh in a layer") {
  Scenario scenario;
  scenario.model = *find_model_preset("gpt2");
  scenario.model.layers = 96;
  scenario.model.hidden = 12288;
  scenario.model.heads = 96;
  scenario.model.kv_heads = 96;
  scenario.model.head_dim = 128;
  scenario.model.intermediate = 4 * 12288;
  scenario.model.max_position = 2048;
  scenario.strategy.tensor.degree = 8;
  scenario.training.clip_norm = 0;
  const Plan plan = make_plan(resolved(scenario));
  const std::int64_t stream = 2 * 2048LL * 12288;  // 50,331,648 bytes
  CHECK(volumes_of(plan, 0).at("all_reduce tp") == 96 * 4 * stream + 2 * stream + 3 * 2048 * 4);
  scenario.strategy.tensor.sequence_parallel = true;
  const std::map<std::string, std::int64_t> bytes = volumes_of(make_plan(resolved(scenario)), 0);
  // 4 + 6 halves of an all-reduce a layer.
  CHECK(bytes.at("all_gather tp") == 96 * 6 * stream + stream + 2 * stream);
  CHECK(bytes.at("reduce_scatter tp") == 96 * 4 * stream + stream + stream);
}

}  // namespace lockstep
