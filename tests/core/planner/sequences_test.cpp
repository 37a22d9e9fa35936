// Plans against the canonical sequences: what is computed and sent in which order, in how many
// elements, and who waits where. The notation is that of tests/support/sequence_text.h.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "core/io/scenario_io.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/scenarios.h"
#include "tests/support/sequence_text.h"

namespace lockstep {
namespace {

using test::Sequence;
using test::SequenceCase;
using test::SequenceOptions;

/// The transformer of the golden files: 2 blocks of width 8, 30 words, 8 tokens.
Scenario small_gpt() {
  Scenario scenario = test::tiny_gpt();
  scenario.model.hidden = 8;
  scenario.model.heads = 4;
  scenario.model.kv_heads = 4;
  scenario.model.intermediate = 16;
  scenario.model.vocab = 30;
  scenario.model.max_position = 8;
  scenario.training.micro_batch = 1;
  return scenario;
}

using Waits = SequenceOptions::Waits;
using Compute = SequenceOptions::Compute;

/// Which plan a case of a golden file describes.
struct Subject {
  std::string name;
  std::string settings;  ///< key=value, blanks between; "strategy." and "training." left out
  int iteration = 3;     ///< from 1; 0 = init
  int class_index = 0;
};

Plan plan_of(Scenario scenario, const std::string& settings) {
  std::istringstream words(settings);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const bool is_strategy = key.rfind("data.", 0) == 0 || key.rfind("tensor.", 0) == 0 ||
                             key.rfind("pipeline.", 0) == 0;
    const bool is_model = key.rfind("model.", 0) == 0;
    set_key(scenario,
            (is_strategy ? "strategy."
             : is_model  ? ""
                         : "training.") +
                key,
            word.substr(equals + 1));
  }
  scenario = resolved(scenario);
  require_valid(scenario);
  return make_plan(scenario);
}

std::string lines_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += word + "\n";
  }
  return text;
}

/// Every case of the file has its subject, and the other way round.
void compare(const std::string& golden,
             const Scenario& scenario,
             const std::vector<Subject>& subjects,
             const SequenceOptions& options) {
  const std::vector<SequenceCase> cases = test::read_sequences(golden);
  CHECK(cases.size() == subjects.size());
  for (const SequenceCase& expected : cases) {
    INFO(golden << ": " << expected.name);
    const auto subject = std::find_if(subjects.begin(), subjects.end(), [&](const Subject& each) {
      return each.name == expected.name;
    });
    REQUIRE(subject != subjects.end());
    const Plan plan = plan_of(scenario, subject->settings);
    const Section& section = subject->iteration == 0 ? *plan.find(SectionKind::kInit)
                                                     : plan.step(subject->iteration - 1);
    const Sequence found = test::sequence_of(plan, section, subject->class_index, options);
    CHECK(lines_of(found.steps) == lines_of(expected.sequence.steps));
    CHECK(lines_of(found.control) == lines_of(expected.sequence.control));
  }
}

}  // namespace

TEST_CASE("sequences of DDP: construction, iterations 1 to 4, no_sync, find_unused, static_graph") {
  // 2,400 bytes, so that there are several buckets.
  const std::string ddp = "data.degree=2 data.bucket_mib=0.002288818359375 ";
  const std::vector<Subject> subjects = {
      {"init", ddp, 0},
      {"iteration 1", ddp, 1},
      {"iteration 2", ddp, 2},
      {"iteration 3", ddp, 3},
      {"two micro-batches, the first under no_sync", ddp + "accumulate=2"},
      {"two micro-batches without no_sync", ddp + "accumulate=2 data.no_sync=false"},
      {"find_unused_parameters, iteration 1", ddp + "data.find_unused_parameters=true", 1},
      {"find_unused_parameters, iteration 3", ddp + "data.find_unused_parameters=true", 3},
      {"static_graph, iteration 1", ddp + "data.static_graph=true", 1},
      {"static_graph, iteration 2", ddp + "data.static_graph=true", 2},
      {"static_graph, iteration 3", ddp + "data.static_graph=true", 3},
      {"static_graph, iteration 4", ddp + "data.static_graph=true", 4},
  };
  compare("sequence_ddp.txt", small_gpt(), subjects, {.waits = Waits::kData});
}

TEST_CASE("sequences of DDP with batch norm: buffers before forward, synchronised statistics") {
  // 260 bytes.
  const std::string ddp = "data.degree=2 data.bucket_mib=0.000247955322265625 ";
  const std::string silent = ddp + "data.broadcast_buffers=false ";
  const std::vector<Subject> subjects = {
      {"init", ddp, 0},
      {"iteration 1", ddp, 1},
      {"iteration 2", ddp, 2},
      {"iteration 3", ddp, 3},
      {"broadcast_buffers off, iteration 3", silent, 3},
      {"synchronised batch norm, broadcast_buffers off, iteration 3",
       silent + "model.mlp_norm=sync_batch_norm",
       3},
  };
  compare("sequence_ddp_batch_norm.txt",
          test::tiny_mlp(MlpNormKind::kBatchNorm),
          subjects,
          {.waits = Waits::kData});
}

TEST_CASE("sequence of DataParallel: scatter, replicate, gather, reduce to device 0") {
  const std::string dp = "data.kind=dp data.degree=3";
  compare("sequence_data_parallel.txt",
          test::tiny_mlp(),
          {{"device 0", dp, 3, 0}, {"device 1", dp, 3, 1}},
          {.waits = Waits::kNone});
}

TEST_CASE("sequence of ZeroRedundancyOptimizer: owner after owner broadcasts, largest first") {
  const std::string optimizer =
      "data.kind=zero1 data.flavour=zero_redundancy_optimizer data.degree=2";
  for (const int owner : {0, 1}) {
    compare("sequence_zero_redundancy_optimizer.txt",
            small_gpt(),
            {{"2 ranks", optimizer, 3, owner}},
            {});
  }
}

TEST_CASE("sequences of ZeRO 1 and 2 in their flavours") {
  const auto zero = [](const std::string& kind, const std::string& flavour, int ranks) {
    return "data.kind=" + kind + " data.flavour=" + flavour +
           " data.degree=" + std::to_string(ranks) + " clip_norm=1 ";
  };
  const std::string buckets = "data.bucket_mib=0.002288818359375 ";
  const std::vector<Subject> stage1 = {
      {"zero1 paper, 3 ranks", zero("zero1", "paper", 3) + buckets},
      {"zero1 megatron, 2 ranks, 2 micro-batches", zero("zero1", "megatron", 2) + "accumulate=2"},
      {"zero1 megatron, 3 ranks", zero("zero1", "megatron", 3)},
      {"zero1 deepspeed, 2 ranks, 2 micro-batches", zero("zero1", "deepspeed", 2) + "accumulate=2"},
  };
  compare("sequence_zero1.txt", small_gpt(), stage1, {.scaling = true});
  const std::vector<Subject> stage2 = {
      {"zero2 paper, 3 ranks, 2 micro-batches",
       zero("zero2", "paper", 3) + buckets + "accumulate=2"},
      {"zero2 deepspeed, 2 ranks, 2 micro-batches, fp16",
       zero("zero2", "deepspeed", 2) + "accumulate=2 precision=fp16"},
      {"zero2 deepspeed, 3 ranks", zero("zero2", "deepspeed", 3)},
  };
  compare("sequence_zero2.txt",
          small_gpt(),
          stage2,
          {.waits = Waits::kNone, .memory = true, .scaling = true});
}

TEST_CASE("sequences of FSDP2 and HSDP: prefetch, reshard, one outstanding reduce-scatter") {
  const auto fsdp = [](int ranks) {
    return "data.kind=fsdp clip_norm=1 data.degree=" + std::to_string(ranks) + " ";
  };
  const std::vector<Subject> subjects = {
      {"reshard, 2 ranks", fsdp(2)},
      {"reshard, 3 ranks", fsdp(3)},
      {"no reshard after forward, 4 ranks", fsdp(4) + "data.reshard=off"},
      {"reshard, 2 ranks, 2 micro-batches", fsdp(2) + "accumulate=2"},
      {"reshard, no prefetch, 2 ranks", fsdp(2) + "data.backward_prefetch=false"},
      {"reshard to groups of 2, 4 ranks", fsdp(4) + "data.reshard=group data.reshard_group=2"},
      {"hsdp, 2 replicas of 2 shards", fsdp(4) + "data.kind=hsdp data.replicate=2"},
  };
  compare("sequence_fsdp.txt", small_gpt(), subjects, {.memory = true, .scaling = true});
}

TEST_CASE("FSDP2 of five blocks gathers and reduces in the order of PyTorch's one communicator") {
  const Plan plan = plan_of(small_gpt(), "data.kind=fsdp data.degree=2 model.layers=5");
  std::string order;
  for (const std::string& word :
       test::sequence_of(plan, plan.step(2), 0, {.waits = Waits::kNone}).steps) {
    if (word.rfind("AG", 0) == 0 || word.rfind("RS", 0) == 0) {
      order += word.substr(0, word.find(')') + 1) + " ";
    }
  }
  CHECK(order ==
        "AG(R) AG(B0) AG(B1) AG(B2) AG(B3) AG(B4) "
        "AG(B4) AG(B3) RS(B4) AG(B2) RS(B3) AG(B1) RS(B2) AG(B0) RS(B1) RS(B0) RS(R) ");
}

TEST_CASE(
    "sequences of tensor parallelism: a block, embedding and loss, with and without sequence") {
  const std::string tp = "model.layers=1 tensor.degree=2 clip_norm=1 ";
  const std::string sp = tp + "tensor.sequence_parallel=true ";
  const std::vector<Subject> subjects = {
      {"tp 2", tp},
      {"tp 2 with sequence parallelism", sp},
      {"tp 2 with sequence parallelism, gathered inputs saved",
       sp + "tensor.save_gathered_input=true"},
  };
  compare("sequence_tensor.txt", small_gpt(), subjects, {.compute = Compute::kModules});
}

TEST_CASE("sequences of a 1F1B pipeline on every stage, to the norm over the stages") {
  const std::string four = "pipeline.degree=4 model.layers=4 accumulate=6 clip_norm=1";
  const std::string two = "pipeline.degree=2 accumulate=2 clip_norm=1 ";
  std::vector<Subject> subjects;
  for (int stage = 0; stage < 4; ++stage) {
    subjects.push_back(
        {"stage " + std::to_string(stage) + " of 4, 6 micro-batches", four, 3, stage});
  }
  for (int stage = 0; stage < 2; ++stage) {
    subjects.push_back(
        {"stage " + std::to_string(stage) + " of 2, data parallel 2, 2 micro-batches",
         two + "data.degree=2",
         3,
         stage});
  }
  subjects.push_back({"stage 0 of 2, not tied", two + "model.tied_embeddings=false"});
  compare("sequence_pipeline.txt",
          small_gpt(),
          subjects,
          {.compute = Compute::kMicrobatches, .waits = Waits::kNone});
}

}  // namespace lockstep
