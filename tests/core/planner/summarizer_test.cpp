// The Summarizer puts steps together from pieces that it counted for other scenarios: they must be
// the steps of the emitted plans, whatever came before.
#include "core/planner/summarizer.h"

#include <algorithm>
#include <map>
#include <random>
#include <sstream>
#include <tuple>
#include <vector>

#include "core/model_presets.h"
#include "core/names.h"
#include "tests/support/catch.h"
#include "tests/support/random_scenario.h"
#include "tests/support/scale.h"

namespace lockstep {
namespace {

using Counts = std::map<std::vector<std::int64_t>, std::int64_t>;

/// Operations by all their fields, in terms of no table.
Counts counts_of(const ProgramSummary& program,
                 const std::vector<Shape>& shapes,
                 const std::vector<Communicator>& communicators) {
  Counts counts;
  for (const OperationCount& each : program.counts) {
    std::vector<std::int64_t> key{static_cast<std::int64_t>(each.kind),
                                  static_cast<std::int64_t>(each.work),
                                  static_cast<std::int64_t>(each.collective),
                                  static_cast<std::int64_t>(each.phase),
                                  static_cast<std::int64_t>(each.stream),
                                  static_cast<std::int64_t>(each.dtype),
                                  each.control ? 1 : 0,
                                  each.elements};
    const Shape& shape = shapes[each.shape];
    key.insert(key.end(), std::begin(shape.extent), std::end(shape.extent));
    if (each.communicator != kNoCommunicator) {
      const Communicator& group = communicators[each.communicator];
      key.push_back(group.axes);
      key.push_back(static_cast<std::int64_t>(group.pipeline_coordinates));
      key.push_back(group.control ? 1 : 0);
    }
    counts[key] += each.count;
  }
  return counts;
}

void check_same(const ProgramSummary& a, const ProgramSummary& b) {
  CHECK(a.operations == b.operations);
  CHECK(a.at_start == b.at_start);
  CHECK(a.at_end == b.at_end);
  CHECK(a.peak.bytes == b.peak.bytes);
  CHECK(a.peak.phase == b.peak.phase);
  CHECK(a.peak.work == b.peak.work);
  CHECK(a.peak.module == b.peak.module);
  CHECK(a.peak.microbatch == b.peak.microbatch);
}

/// The steady step of the emitted plan, walked operation by operation.
void check_against_plan(const PlanSummary& summary, const Scenario& scenario) {
  const Plan plan = make_plan(scenario, {false, false});
  REQUIRE(summary.classes.size() == static_cast<std::size_t>(plan.class_count()));
  CHECK(summary.class_axes == plan.class_axes);
  for (int index = 0; index < plan.class_count(); ++index) {
    const auto c = static_cast<std::size_t>(index);
    CAPTURE(index);
    ProgramSummary emitted =
        summarize(plan, index, plan.find(SectionKind::kInit)->programs[c], CategoryBytes{});
    for (const std::int32_t variant : plan.variant_of_iteration) {
      const Section* step = plan.find(SectionKind::kStep, variant);
      emitted = summarize(plan, index, step->programs[c], emitted.at_end);
    }
    check_same(summary.classes[c], emitted);
    CHECK(counts_of(summary.classes[c], summary.shapes, summary.communicators) ==
          counts_of(emitted, plan.shapes, plan.communicators));
  }
}

struct DataForm {
  DataKind kind = DataKind::kDdp;
  ZeroFlavour flavour = ZeroFlavour::kPaper;
  bool option = false;  ///< of the kind: bucket views, or no reshard
};

/// One of the scenarios that a search goes through: few values per field, all combinations.
Scenario drawn(std::mt19937_64& random) {
  const auto one_of = [&](auto list) { return std::data(list)[random() % std::size(list)]; };
  using Numbers = std::initializer_list<std::int64_t>;
  static constexpr DataForm kForms[] = {{DataKind::kDdp, {}, false},
                                        {DataKind::kDdp, {}, true},
                                        {DataKind::kZero1, ZeroFlavour::kPaper, false},
                                        {DataKind::kZero1, ZeroFlavour::kMegatron, false},
                                        {DataKind::kZero1, ZeroFlavour::kDeepSpeed, false},
                                        {DataKind::kZero2, ZeroFlavour::kPaper, false},
                                        {DataKind::kZero2, ZeroFlavour::kDeepSpeed, false},
                                        {DataKind::kZero3, ZeroFlavour::kPaper, false},
                                        {DataKind::kFsdp, {}, false},
                                        {DataKind::kFsdp, {}, true},
                                        {DataKind::kHsdp, {}, false}};
  Scenario scenario;
  scenario.model.layers = one_of(Numbers{7, 8});
  scenario.model.heads = scenario.model.kv_heads = 8;
  scenario.model.head_dim = 16;
  scenario.model.tied_embeddings = random() % 2 == 0;
  scenario.training.seq_len = 32;
  scenario.training.micro_batch = one_of(Numbers{1, 3});
  scenario.training.accumulate = one_of(Numbers{1, 2, 3, 4, 5, 9});
  scenario.training.recompute = static_cast<Recompute>(random() % 3);
  if (scenario.training.recompute == Recompute::kFull) {
    scenario.training.recompute_every = one_of(Numbers{1, 1, 2, 3});
  }
  scenario.training.precision = std::array{
      Precision::kBf16, Precision::kFp32, Precision::kFp16, Precision::kAutocast}[random() % 4];
  scenario.strategy.tensor.degree = one_of(Numbers{1, 2, 4});
  scenario.strategy.tensor.sequence_parallel =
      scenario.strategy.tensor.degree > 1 && random() % 2 == 0;
  scenario.strategy.pipeline.degree = one_of(Numbers{1, 1, 2, 3, 4, 5});
  PipelineStrategy& pipeline = scenario.strategy.pipeline;
  pipeline.schedule = static_cast<ScheduleKind>(random() % kScheduleKindCount);
  const bool one_chunk = pipeline.schedule == ScheduleKind::kGPipe ||
                         pipeline.schedule == ScheduleKind::k1F1B ||
                         pipeline.schedule == ScheduleKind::kZbH1;
  pipeline.chunks = pipeline.degree == 1 || one_chunk         ? 1
                    : pipeline.schedule == ScheduleKind::kZbV ? 2
                                                              : one_of(Numbers{2, 3});
  if (pipeline.degree == 2 && pipeline.chunks == 1 && random() % 3 == 0) {
    pipeline.layers_per_stage = {2, scenario.model.layers - 2};
  }
  const DataForm& form = kForms[random() % std::size(kForms)];
  DataStrategy& data = scenario.strategy.data;
  data.kind = form.kind;
  data.flavour = form.flavour;
  data.degree = one_of(Numbers{1, 2, 4, 8});
  data.replicate = form.kind == DataKind::kHsdp ? 2 : 1;
  data.no_sync = random() % 4 != 0;
  data.gradient_as_bucket_view = form.kind == DataKind::kDdp && form.option;
  data.reshard = form.kind == DataKind::kFsdp && form.option ? Reshard::kOff : Reshard::kOn;
  if (form.kind == DataKind::kZero2) {
    // From several buckets per block to several blocks per bucket, not alike from block to block.
    data.bucket_mib = static_cast<double>(one_of(Numbers{64, 300, 1500, 4000})) / 1024;
  }
  return resolved(scenario);
}

Scenario drawn_legal(std::mt19937_64& random) {
  for (;;) {
    Scenario scenario = drawn(random);
    if (validate(scenario).empty()) {
      return scenario;
    }
  }
}

std::string described(const Scenario& scenario) {
  const StrategySpec& strategy = scenario.strategy;
  const TrainingSpec& training = scenario.training;
  std::ostringstream text;
  text << name_of(strategy.data.kind) << " flavour " << static_cast<int>(strategy.data.flavour)
       << " dp " << strategy.data.degree << " tp " << strategy.tensor.degree
       << (strategy.tensor.sequence_parallel ? " sp" : "") << " pp " << strategy.pipeline.degree
       << " " << name_of(strategy.pipeline.schedule) << " chunks " << strategy.pipeline.chunks
       << " layers " << scenario.model.layers << (scenario.model.tied_embeddings ? " tied" : "")
       << " micro-batches " << training.accumulate << " recompute "
       << static_cast<int>(training.recompute) << " every " << training.recompute_every;
  return text.str();
}

}  // namespace

TEST_CASE("steps put together from pieces of other scenarios are those of the emitted plans",
          "[summarizer]") {
  std::mt19937_64 random(test::test_seed());
  Summarizer summarizer;
  for (int i = 0; i < test::scaled(400); ++i) {
    const Scenario scenario = drawn_legal(random);
    INFO(described(scenario));
    check_against_plan(summarizer.summarize(scenario), scenario);
  }
}

TEST_CASE("a summarizer that has seen much says the same as a fresh one", "[summarizer]") {
  std::mt19937_64 random(test::test_seed() + 1);
  std::vector<Scenario> scenarios;
  for (int i = 0; i < test::scaled(60); ++i) {
    scenarios.push_back(drawn_legal(random));
  }
  Summarizer used;
  for (int round = 0; round < 2; ++round) {
    std::shuffle(scenarios.begin(), scenarios.end(), random);
    for (const Scenario& scenario : scenarios) {
      INFO(described(scenario));
      const PlanSummary a = used.summarize(scenario);
      const PlanSummary b = summarize_plan(scenario);
      REQUIRE(a.classes.size() == b.classes.size());
      for (std::size_t c = 0; c < a.classes.size(); ++c) {
        check_same(a.classes[c], b.classes[c]);
        CHECK(counts_of(a.classes[c], a.shapes, a.communicators) ==
              counts_of(b.classes[c], b.shapes, b.communicators));
      }
    }
  }
}

TEST_CASE("whatever the scenario, the summarizer counts what the planner counts in one go",
          "[summarizer]") {
  std::mt19937_64 random(test::test_seed() + 2);
  Summarizer summarizer;
  for (int i = 0; i < test::scaled(200); ++i) {
    const Scenario scenario = test::random_scenario(random);
    INFO(described(scenario));
    const PlanSummary a = summarizer.summarize(scenario);
    const PlanSummary b = count_plan(scenario);
    REQUIRE(a.classes.size() == b.classes.size());
    for (std::size_t c = 0; c < a.classes.size(); ++c) {
      check_same(a.classes[c], b.classes[c]);
      CHECK(counts_of(a.classes[c], a.shapes, a.communicators) ==
            counts_of(b.classes[c], b.shapes, b.communicators));
    }
  }
}

TEST_CASE("with sequence parallelism ZeRO-2 reduces later, whatever was summarized before",
          "[summarizer]") {
  Scenario scenario;
  scenario.model.layers = 4;
  scenario.training.seq_len = 32;
  scenario.training.accumulate = 3;
  scenario.strategy.tensor.degree = 2;
  scenario.strategy.data.kind = DataKind::kZero2;
  scenario.strategy.data.degree = 2;
  scenario.strategy.data.bucket_mib = 0.06;
  Summarizer summarizer;
  for (const bool sequence_parallel : {true, false, true}) {
    CAPTURE(sequence_parallel);
    scenario.strategy.tensor.sequence_parallel = sequence_parallel;
    check_against_plan(summarizer.summarize(resolved(scenario)), resolved(scenario));
  }
}

TEST_CASE("outlines of classes that do the same share their parts", "[summarizer]") {
  Scenario scenario;
  scenario.model = *find_model_preset("llama-3.1-8b");
  scenario.training.seq_len = 2048;
  scenario.training.accumulate = 16;
  scenario.strategy.pipeline.degree = 8;
  scenario.strategy.data.degree = 4;
  Summarizer summarizer;
  const StepOutline& step = summarizer.outline(resolved(scenario));
  REQUIRE(step.classes.size() == 8);
  CHECK(step.class_axes == mask_of(Axis::kPipeline));
  for (const ClassOutline& each : step.classes) {
    std::int64_t operations = 0;
    for (const FragmentCount& part : step.parts_of(each)) {
      operations += part.times * part.fragment->operations;
    }
    CHECK(operations == each.operations);
  }
  // 32 layers over 8 stages: the stages between the first and the last are alike, and under 1F1B
  // each of them holds one micro-batch less than the one before it.
  for (std::size_t rank = 2; rank < 7; ++rank) {
    CHECK(step.classes[rank].first_part == step.classes[1].first_part);
    CHECK(total(step.classes[rank].peak.bytes) < total(step.classes[rank - 1].peak.bytes));
  }
}

}  // namespace lockstep
