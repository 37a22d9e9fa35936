#include "core/memory_report.h"

#include <set>

#include "core/cluster_presets.h"
#include "core/memory_advice.h"
#include "core/model_presets.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

Scenario on(const char* model, const char* cluster, DataKind kind, std::int64_t ranks) {
  Scenario scenario;
  scenario.model = *find_model_preset(model);
  scenario.cluster = *find_cluster_preset(cluster);
  scenario.strategy.data.kind = kind;
  scenario.strategy.data.degree = ranks;
  return resolved(scenario);
}

}  // namespace

TEST_CASE("Rows of a memory report add up to its categories and name every live buffer once") {
  for (const DataKind kind :
       {DataKind::kDdp, DataKind::kZero1, DataKind::kZero2, DataKind::kFsdp}) {
    const MemoryReport report =
        memory_report(on("llama-tiny", "dgx-h100", kind, 3), {.rows = true});
    for (const RankMemory& it : report.ranks) {
      CategoryBytes sums{};
      std::set<std::pair<Category, std::string>> names;
      for (const LedgerRow& row : it.rows) {
        sums[static_cast<std::size_t>(row.category)] += row.term.bytes;
        CHECK(names.emplace(row.category, row.term.name).second);
      }
      CHECK(sums == it.bytes);
    }
  }
}

TEST_CASE("A walked plan and a counted plan have the same peak without a pipeline") {
  for (const DataKind kind : {DataKind::kZero2, DataKind::kZero3, DataKind::kFsdp}) {
    Scenario scenario = on("gpt2-tiny", "dgx-h100", kind, 4);
    scenario.training.accumulate = 3;
    const MemoryReport walked = memory_report(scenario);
    const MemoryReport counted = memory_report(scenario, {.max_operations = 0});
    CHECK_FALSE(walked.counted);
    CHECK(counted.counted);
    CHECK(walked.worst().bytes == counted.worst().bytes);
    CHECK(counted_peak_bytes(scenario) == counted.worst().peak_bytes());
  }
}

TEST_CASE("The worst rank of an uneven pipeline is not averaged away") {
  // Seven of eight layers on the second stage: it holds about seven times as many parameters.
  Scenario scenario = on("gpt2-tiny", "dgx-h100", DataKind::kDdp, 1);
  scenario.model.layers = 8;
  scenario.strategy.pipeline.degree = 2;
  scenario.strategy.pipeline.layers_per_stage = {1, 7};
  scenario.training.accumulate = 2;
  scenario = resolved(scenario);
  const MemoryReport report = memory_report(scenario);
  REQUIRE(report.ranks.size() == 2);
  CHECK(report.worst().rank == 1);
  CHECK(report.ranks_of(report.worst()) == std::vector<int>{1});
  CHECK(report.ranks[0].peak_bytes() > report.ranks[1].peak_bytes());
}

TEST_CASE("Ranks that hold the same are one class with all its ranks") {
  Scenario scenario = on("gpt2-tiny", "dgx-h100", DataKind::kDdp, 2);
  scenario.strategy.pipeline.degree = 2;
  scenario.strategy.tensor.degree = 2;
  scenario.training.accumulate = 2;
  const MemoryReport report = memory_report(resolved(scenario));
  REQUIRE(report.ranks.size() == 2);
  for (const RankMemory& it : report.ranks) {
    const int first = it.class_index * 4;  // tp inside dp inside pp
    CHECK(report.ranks_of(it) == std::vector<int>{first, first + 1, first + 2, first + 3});
    CHECK(it.count == 4);
  }
}

TEST_CASE("A device without a driver has no context, no communicators and whole pages") {
  const MemoryReport report = memory_report(on("mlp-tiny", "cpu-laptop", DataKind::kDdp, 2));
  const RankMemory& it = report.worst();
  CHECK(it.non_tensor.empty());
  REQUIRE(it.margins.size() == 1);
  // Each buffer is rounded up to 4 KiB, so the bound is a multiple of it.
  CHECK(it.upper_bound_bytes() % 4096 == 0);
  CHECK(it.upper_bound_bytes() > it.peak_bytes());
}

TEST_CASE("A context that fills the device leaves no room") {
  Scenario scenario = on("gpt2-tiny", "dgx-h100", DataKind::kDdp, 1);
  CHECK(memory_report(scenario).fits());
  CHECK(memory_report(scenario).surely_fits());
  scenario.cluster.device.context_bytes = scenario.cluster.device.memory_bytes;
  CHECK_FALSE(memory_report(scenario).fits());
}

TEST_CASE("Advice keeps the global batch and the legality of the scenario") {
  Scenario scenario = on("llama-3.1-8b", "dgx-h100", DataKind::kDdp, 8);
  scenario.training.seq_len = 8192;
  scenario.training.micro_batch = 2;
  const MemoryAdvice advice = memory_advice(scenario);
  REQUIRE(!advice.single.empty());
  CHECK(advice.single.size() <= 3);
  for (const MemoryChange& change : advice.single) {
    CHECK(change.peak_bytes < counted_peak_bytes(scenario));
    CHECK(change.flags.rfind("--", 0) == 0);
    CHECK(change.cost != "");
  }
}

TEST_CASE("There is no advice where nothing can be turned") {
  // One rank of SGD on fp32 rows: nothing to shard, to drop or to narrow but the precision.
  Scenario scenario = on("mlp-tiny", "dgx-h100", DataKind::kDdp, 1);
  scenario.training.optimizer = OptimizerKind::kSgd;
  scenario.training.global_batch = 1;
  const MemoryAdvice advice = memory_advice(resolved(scenario));
  for (const MemoryChange& change : advice.single) {
    CHECK(change.peak_bytes < counted_peak_bytes(scenario));
  }
  CHECK(advice.together.empty());
}
