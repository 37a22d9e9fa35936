#include "core/legality.h"

#include <functional>
#include <set>

#include "core/cluster_presets.h"
#include "core/model_presets.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

/// A legal scenario from which each case departs in one respect.
Scenario legal() {
  Scenario s;
  s.model = *find_model_preset("llama-3.1-8b");
  s.cluster = *find_cluster_preset("dgx-h100");
  s.training.seq_len = 4096;
  return resolved(s);
}

Scenario perceptron() {
  Scenario s;
  s.model = *find_model_preset("mlp-tiny-syncbn");
  return resolved(s);
}

struct Case {
  const char* rule;
  Scenario (*base)();
  std::function<void(Scenario&)> change;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"tp_divides_heads", legal, [](Scenario& s) { s.strategy.tensor.degree = 3; }},
      {"tp_divides_kv_heads", legal, [](Scenario& s) { s.strategy.tensor.degree = 16; }},
      {"tp_divides_intermediate",
       legal,
       [](Scenario& s) {
         s.strategy.tensor.degree = 8;
         s.model.intermediate = 14337;
       }},
      {"tp_divides_sequence",
       legal,
       [](Scenario& s) {
         s.strategy.tensor.degree = 8;
         s.strategy.tensor.sequence_parallel = true;
         s.training.seq_len = 4097;
       }},
      {"mlp_without_tensor_parallel",
       perceptron,
       [](Scenario& s) { s.strategy.tensor.degree = 2; }},
      {"mlp_without_pipeline",
       perceptron,
       [](Scenario& s) {
         s.strategy.pipeline.degree = 2;
         s.training.accumulate = 2;
       }},
      {"mlp_without_sequence", perceptron, [](Scenario& s) { s.training.seq_len = 2; }},
      {"mlp_without_recompute",
       perceptron,
       [](Scenario& s) { s.training.recompute = Recompute::kFull; }},
      {"mlp_counts_rows",
       perceptron,
       [](Scenario& s) { s.training.loss_mean = LossMean::kGlobalTokens; }},
      {"mlp_without_dropout", perceptron, [](Scenario& s) { s.training.dropout = 0.1; }},
      {"pp_within_layers",
       legal,
       [](Scenario& s) {
         s.strategy.pipeline.degree = 8;
         s.model.layers = 7;
         s.training.accumulate = 8;
       }},
      {"stage_list_matches",
       legal,
       [](Scenario& s) {
         s.strategy.pipeline.degree = 2;
         s.training.accumulate = 2;
         s.strategy.pipeline.layers_per_stage = {16, 15};
       }},
      {"chunks_need_pipeline", legal, [](Scenario& s) { s.strategy.pipeline.chunks = 2; }},
      {"actions_need_pipeline",
       legal,
       [](Scenario& s) { s.strategy.pipeline.actions_csv = "0F0,0B0"; }},
      {"actions_match",
       legal,
       [](Scenario& s) {  // two ranks and one micro-batch, asked to run two
         s.strategy.pipeline.degree = 2;
         s.training.accumulate = 2;
         s.strategy.pipeline.actions_csv = "0F0,0B0\n1F0,1B0\n";
       }},
      {"mlp_stage_list",
       perceptron,
       [](Scenario& s) {
         s.strategy.pipeline.layers_per_stage = {1, 3};
       }},
      {"schedule",
       legal,
       [](Scenario& s) {
         s.strategy.pipeline.degree = 4;
         s.training.accumulate = 3;  // PyTorch: 1F1B needs at least as many micro-batches as stages
       }},
      {"dp_on_one_node",
       legal,
       [](Scenario& s) {
         s.strategy.data.kind = DataKind::kDp;
         s.strategy.data.degree = 16;
         s.cluster.nodes = 2;
       }},
      {"dp_alone",
       legal,
       [](Scenario& s) {
         s.strategy.data.kind = DataKind::kDp;
         s.strategy.tensor.degree = 2;
       }},
      {"dp_without_sync_batch_norm",
       perceptron,
       [](Scenario& s) { s.strategy.data.kind = DataKind::kDp; }},
      {"zero2_without_pipeline",
       legal,
       [](Scenario& s) {
         s.strategy.data.kind = DataKind::kZero2;
         s.strategy.pipeline.degree = 2;
         s.training.accumulate = 2;
       }},
      {"zero3_without_pipeline",
       legal,
       [](Scenario& s) {
         s.strategy.data.kind = DataKind::kZero3;
         s.strategy.pipeline.degree = 2;
         s.training.accumulate = 2;
       }},
      {"pipeline_reduces_last",
       legal,
       [](Scenario& s) {
         s.strategy.pipeline.degree = 2;
         s.training.accumulate = 2;
         s.strategy.data.no_sync = false;
       }},
      {"tokens_reduced_once",
       legal,
       [](Scenario& s) {
         s.strategy.data.degree = 2;
         s.training.accumulate = 2;
         s.strategy.data.no_sync = false;
         s.training.loss_mean = LossMean::kGlobalTokens;
       }},
      {"tensor_reduced_once",
       legal,
       [](Scenario& s) {
         s.strategy.data.degree = 2;
         s.strategy.tensor.degree = 2;
         s.training.accumulate = 2;
         s.strategy.data.no_sync = false;
       }},
      {"context_parallel", legal, [](Scenario& s) { s.strategy.context = 2; }},
      {"batch_divides",
       legal,
       [](Scenario& s) {
         s.strategy.data.degree = 3;
         s.training.global_batch = 8;
       }},
      {"batch_contradicts",
       legal,
       [](Scenario& s) {
         s.training.accumulate = 4;
         s.training.global_batch = 8;
       }},
      {"sequence_within_positions",
       legal,
       [](Scenario& s) { s.model = *find_model_preset("gpt2"); }},
      {"tensor_size", legal, [](Scenario& s) { s.training.micro_batch = 1 << 20; }},
      {"activation_size",
       legal,
       [](Scenario& s) {
         s.training.micro_batch = 1 << 12;
         s.training.accumulate = 32767;
       }},
      {"unused_parameters",
       legal,
       [](Scenario& s) {
         s.training.unused = {{0, {}, {}}};
       }},
      {"expert_parallel",
       legal,
       [](Scenario& s) {
         s.model = *find_model_preset("mixtral-8x7b");
         s.strategy.expert = 2;
       }},
      {"experts_without_sequence_parallel",
       legal,
       [](Scenario& s) {
         s.model = *find_model_preset("mixtral-8x7b");
         s.strategy.tensor.degree = 2;
         s.strategy.tensor.sequence_parallel = true;
       }},
      {"wrap_every_module",
       legal,
       [](Scenario& s) {
         s.strategy.data.kind = DataKind::kFsdp;
         s.strategy.data.wrap = WrapPolicy::kEveryModule;
       }},
      {"hybrid_reshards_fully",
       legal,
       [](Scenario& s) {
         s.strategy.data.kind = DataKind::kHsdp;
         s.strategy.data.replicate = 2;
         s.strategy.data.reshard = Reshard::kGroup;
         s.strategy.data.reshard_group = 2;
       }},
      {"microbatches_numbered", legal, [](Scenario& s) { s.training.accumulate = 32768; }},
      {"tied_stages_numbered",
       legal,
       [](Scenario& s) {
         s.model.tied_embeddings = true;
         s.model.layers = 128;
         s.strategy.pipeline.degree = 128;
         s.training.accumulate = 128;
         s.cluster.nodes = 16;
       }},
      {"world_fits_cluster", legal, [](Scenario& s) { s.strategy.data.degree = 9; }},
      {"device_has_precision",
       legal,
       [](Scenario& s) { s.cluster = *find_cluster_preset("v100-16gb"); }},
  };
  return all;
}

}  // namespace

TEST_CASE("The scenarios from which the cases depart are legal") {
  CHECK(validate(legal()).one_line() == "");
  CHECK(validate(perceptron()).one_line() == "");
  CHECK(first_broken_rule(legal()) == nullptr);
}

TEST_CASE("Each rule refuses a scenario that breaks it and only it") {
  for (const Case& item : cases()) {
    INFO(item.rule);
    Scenario s = item.base();
    item.change(s);
    std::set<std::string> broken;
    for (const LegalityRule& rule : legality_rules()) {
      if (rule.broken(s)) {
        broken.insert(rule.id);
        CHECK(rule.message(s).find('\n') == std::string::npos);
      }
    }
    CHECK(broken.count(item.rule) == 1);
    // A degree that does not fit usually breaks several divisibility rules; the others stand alone.
    const bool alone = std::string(item.rule).rfind("tp_", 0) != 0;
    CHECK((!alone || broken.size() == 1));
  }
}

TEST_CASE("Every rule of the table has a case, a unique id and a key of the scenario") {
  std::set<std::string> tested;
  for (const Case& item : cases()) {
    tested.insert(item.rule);
  }
  std::set<std::string> ids;
  for (const LegalityRule& rule : legality_rules()) {
    INFO(rule.id);
    CHECK(tested.count(rule.id) == 1);
    CHECK(ids.insert(rule.id).second);
    CHECK(std::string(rule.place).find('.') != std::string::npos);
  }
}

TEST_CASE("A refusal carries the reason with its numbers") {
  Scenario s = legal();
  s.strategy.tensor.degree = 16;
  CHECK(
      validate(resolved(s))
          .one_line()
          .find(
              "strategy.tensor.degree: must divide model.kv_heads: each rank holds whole key-value "
              "heads") == 0);
  CHECK(validate(resolved(s)).one_line().find("(tp 16, kv_heads 8)") != std::string::npos);
}

TEST_CASE("The large published runs are legal") {
  Scenario s;
  s.model = *find_model_preset("llama-3.1-405b");
  s.cluster = *find_cluster_preset("dgx-h100");
  s.training.seq_len = 8192;
  s.training.accumulate = 64;
  s.strategy.data.kind = DataKind::kZero1;
  s.strategy.data.degree = 128;
  s.strategy.tensor.degree = 8;
  s.strategy.tensor.sequence_parallel = true;
  s.strategy.pipeline.degree = 16;
  s.strategy.pipeline.layers_per_stage = {7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7};
  const Scenario done = resolved(s);
  CHECK(validate(done).one_line() == "");
  CHECK(done.cluster.nodes == 2048);
  CHECK(done.strategy.world_size() == 16384);
}

TEST_CASE("fsdp and hsdp go with a pipeline") {
  Scenario s = legal();
  s.strategy.pipeline.degree = 2;
  s.training.accumulate = 2;
  s.strategy.data.kind = DataKind::kFsdp;
  s.strategy.data.degree = 4;
  CHECK(validate(resolved(s)).one_line() == "");
  s.strategy.data.kind = DataKind::kHsdp;
  s.strategy.data.replicate = 2;
  CHECK(validate(resolved(s)).one_line() == "");
}
