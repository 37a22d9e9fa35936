// A trial's record against its plan, and faults put into either.
#include "executor/trial_run.h"

#include "core/io/scenario_io.h"
#include "core/memory_timeline.h"
#include "core/planner/planner.h"
#include "executor/calibrate.h"
#include "tests/support/catch.h"

namespace lockstep::exec {
namespace {

Scenario tiny(const char* kind, std::int64_t data, std::int64_t tensor, std::int64_t stages) {
  Scenario scenario;
  set_key(scenario, "model", "gpt2-tiny");
  set_key(scenario, "strategy.data.kind", kind);
  scenario.training.seq_len = 12;
  scenario.training.micro_batch = 1;
  scenario.training.accumulate = stages > 1 ? 3 : 1;
  scenario.training.precision = Precision::kFp32;
  scenario.strategy.data.degree = data;
  scenario.strategy.tensor.degree = tensor;
  scenario.strategy.pipeline.degree = stages;
  return resolved(scenario);
}

TEST_CASE("a trial records the plan's transfers and the plan's bytes on every rank") {
  const Scenario scenarios[] = {
      tiny("ddp", 3, 1, 1), tiny("fsdp", 3, 1, 1), tiny("zero1", 1, 2, 2)};
  for (const Scenario& scenario : scenarios) {
    const Plan plan = make_plan(scenario, {.evaluate = false, .save = false});
    TrialOptions options;
    options.steps = 2;
    const TrialRun run = run_trial(scenario, plan, options);
    REQUIRE(run.steps.size() == 2);
    CHECK(run.transfer_difference.empty());
    CHECK(run.processor_s > 0);
    for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
      CHECK(run.peaks[static_cast<std::size_t>(rank)] ==
            highest_memory(plan, plan.class_of_rank(rank), run.steps.back().section).bytes);
    }
  }
}

TEST_CASE("a trial that is stopped at once has no steps") {
  const Scenario scenario = tiny("ddp", 2, 1, 1);
  const Plan plan = make_plan(scenario, {.evaluate = false, .save = false});
  TrialOptions options;
  options.stop = [] { return true; };
  CHECK(run_trial(scenario, plan, options).steps.empty());
}

TEST_CASE("a transfer that is missing, longer, of another type or out of order is named") {
  const std::vector<IssuedTransfer> planned{{.reduction = Reduction::kSum, .elements = 40},
                                            {.collective = Collective::kAllGather, .elements = 7}};
  CHECK(first_difference(planned, planned).empty());
  std::vector<IssuedTransfer> issued = planned;
  issued[1].elements = 8;
  CHECK(first_difference(planned, issued) ==
        "transfer 1: planned all_gather of 7 fp32, issued all_gather of 8 fp32");
  issued = planned;
  issued[0].dtype = DType::kFp64;
  CHECK_FALSE(first_difference(planned, issued).empty());
  issued = {planned[1], planned[0]};
  CHECK_FALSE(first_difference(planned, issued).empty());
  CHECK(first_difference(planned, {planned.data(), 1}) == "2 transfers planned, 1 issued");
}

TEST_CASE("the highest moment counts device memory from what was lent before") {
  const std::vector<MemoryEvent> events{{Category::kParameter, Storage::kDevice, false, 10},
                                        {Category::kInput, Storage::kHost, false, 1000},
                                        {Category::kActivation, Storage::kDevice, false, 90},
                                        {Category::kActivation, Storage::kDevice, true, 90},
                                        {Category::kGradient, Storage::kDevice, false, 30},
                                        {Category::kGradient, Storage::kDevice, true, 30}};
  CategoryBytes expected{};
  expected[static_cast<std::size_t>(Category::kParameter)] = 10;
  expected[static_cast<std::size_t>(Category::kGradient)] = 30;
  CHECK(highest_lent(events, 4) == expected);
}

TEST_CASE("links of known latency and bandwidth come out of transfers made from them") {
  constexpr double kLatency = 2e-6;
  constexpr double kBandwidth = 5e9;
  Calibration it;
  for (const int ranks : {2, 3}) {
    const double others = ranks - 1;
    it.transfers.push_back({"all_reduce", ranks, 1024, 2 * others * kLatency});
    it.transfers.push_back({"all_gather", ranks, 1024, others * kLatency});
    it.transfers.push_back({"all_reduce", ranks, 6'000'000, 2 * others / ranks * 6e6 / kBandwidth});
    it.transfers.push_back({"all_gather", ranks, 6'000'000, others / ranks * 6e6 / kBandwidth});
  }
  it.transfers.push_back({"send", 2, 6'000'000, 6e6 / kBandwidth});
  fit_link(it);
  CHECK(it.latency_s == Approx(kLatency));
  CHECK(it.link_bandwidth == Approx(kBandwidth));
}

TEST_CASE("a calibration of three ranks gives figures that a cluster may have") {
  CalibrateOptions options;
  options.ranks = 3;
  options.seconds_each = 0.01;
  const Calibration it = calibrate(options);
  const ClusterSpec cluster = cluster_of(it, "test");
  Problems problems;
  validate(cluster, problems);
  CHECK(problems.one_line().empty());
  CHECK(median_rate(it, DType::kFp32) <= best_rate(it, DType::kFp32));
  CHECK(cluster.cores_per_node == it.cores);
  CHECK(cluster.sources.size() > 5);
}

}  // namespace
}  // namespace lockstep::exec
