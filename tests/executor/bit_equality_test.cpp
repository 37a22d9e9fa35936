// What must not differ in a single bit: settings that only say when something is computed, kept or
// sent. Sums of several ranks are taken in rank order at any size, so how gradients are cut into
// messages is such a setting too.
#include <string>
#include <utility>
#include <vector>

#include "core/names.h"
#include "tests/support/awkward.h"
#include "tests/support/catch.h"
#include "tests/support/real_run.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSteps = 4;

/// Two blocks, fp32 (whose rounding shows more), AdamW, no clipping: norms are summed by shard.
Scenario base() {
  Scenario scenario = test::awkward_trainings()[0].scenario;
  scenario.model.layers = 2;
  scenario.training.precision = Precision::kFp32;
  scenario.training.recompute = Recompute::kNone;
  scenario.training.accumulate = 1;
  scenario.training.clip_norm = 0;
  return scenario;
}

template <typename Change>
Scenario with(Scenario scenario, Change&& change) {
  change(scenario);
  return resolved(scenario);
}

/// All of `scenarios` have the parameters and losses of the first.
void check_equal(const std::vector<Scenario>& scenarios) {
  require_valid(scenarios.front());
  const test::RunResult first = test::run_for_real(scenarios.front(), kSteps);
  for (const Scenario& each : scenarios) {
    require_valid(each);
    INFO(test::text_of(each));
    const test::RunResult run = test::run_for_real(each, kSteps);
    INFO(test::difference(first, run).tensor);
    CHECK(run == first);
  }
}

}  // namespace

TEST_CASE("recomputed activations have the bits of kept ones, with dropout") {
  for (const std::int64_t tensor : {1, 2}) {
    const Scenario kept = with(base(), [&](Scenario& s) {
      s.training.dropout = 0.2;
      s.training.attention = AttentionKind::kPlain;
      s.training.accumulate = 2;
      s.strategy.tensor.degree = tensor;
      s.strategy.tensor.sequence_parallel = tensor > 1;
      s.strategy.data.degree = 2;
    });
    std::vector<Scenario> all = {kept};
    for (const auto& [kind, every] :
         {std::pair{Recompute::kFull, 1}, {Recompute::kFull, 2}, {Recompute::kSelective, 1}}) {
      all.push_back(kept);
      all.back().training.recompute = kind;
      all.back().training.recompute_every = every;
    }
    check_equal(all);
  }
}

TEST_CASE("when FSDP frees and gathers parameters changes no bit") {
  std::vector<Scenario> all;
  for (const Reshard reshard : {Reshard::kOn, Reshard::kOff, Reshard::kGroup}) {
    for (const bool prefetch : {true, false}) {
      all.push_back(with(base(), [&](Scenario& s) {
        s.training.accumulate = 2;
        s.strategy.data.kind = DataKind::kFsdp;
        s.strategy.data.degree = 4;
        s.strategy.data.reshard = reshard;
        s.strategy.data.reshard_group = reshard == Reshard::kGroup ? 2 : 0;
        s.strategy.data.backward_prefetch = prefetch;
      }));
      if (!validate(all.back()).empty()) {
        all.pop_back();
      }
    }
  }
  CHECK(all.size() >= 4);
  check_equal(all);
}

TEST_CASE("DDP of any bucket size, ZeRO and FSDP of the same ranks have the same bits") {
  for (const std::int64_t ranks : {2, 3, 4}) {
    const Scenario ddp = with(base(), [&](Scenario& s) { s.strategy.data.degree = ranks; });
    std::vector<Scenario> all = {ddp};
    for (const double mib : {0.001, 0.01, 0.1, 100.0}) {
      all.push_back(with(ddp, [&](Scenario& s) { s.strategy.data.bucket_mib = mib; }));
    }
    all.push_back(with(ddp, [](Scenario& s) {
      s.strategy.data.bucket_mib = 0.01;
      s.strategy.data.gradient_as_bucket_view = true;
    }));
    all.push_back(with(ddp, [](Scenario& s) { s.strategy.data.ideal = true; }));
    for (const DataKind kind : {DataKind::kZero1, DataKind::kZero2}) {
      for (const NameRow<ZeroFlavour>& flavour : name_table<ZeroFlavour>()) {
        all.push_back(with(ddp, [&](Scenario& s) {
          s.strategy.data.kind = kind;
          s.strategy.data.flavour = flavour.value;
          s.strategy.data.bucket_mib = 0.01;
        }));
        if (!validate(all.back()).empty()) {
          all.pop_back();
        }
      }
    }
    for (const DataKind kind : {DataKind::kFsdp, DataKind::kZero3}) {
      all.push_back(with(ddp, [&](Scenario& s) { s.strategy.data.kind = kind; }));
    }
    check_equal(all);
  }
}

TEST_CASE("GPipe and 1F1B and interleaved and one stage have the same bits, with dropout") {
  for (const bool tied : {false, true}) {
    const Scenario one_stage = with(base(), [&](Scenario& s) {
      s.model.layers = 4;
      s.model.tied_embeddings = tied;
      s.training.accumulate = 4;
      s.training.dropout = 0.2;
    });
    std::vector<Scenario> all;
    if (!tied) {  // stages sum the two gradients of a tied weight apart, one stage as they come
      all.push_back(one_stage);
    }
    for (const NameRow<ScheduleKind>& schedule : name_table<ScheduleKind>()) {
      // Breadth-first backward takes micro-batches from the last to the first, and the V of zbv
      // ends on the rank where it began, which holds a tied weight once.
      const bool other_sums = schedule.value == ScheduleKind::kLoopedBfs ||
                              (tied && schedule.value == ScheduleKind::kZbV);
      if (other_sums) {
        continue;
      }
      all.push_back(with(one_stage, [&](Scenario& s) {
        const bool one = schedule.value == ScheduleKind::kGPipe ||
                         schedule.value == ScheduleKind::k1F1B ||
                         schedule.value == ScheduleKind::kZbH1;
        s.strategy.pipeline.degree = 2;
        s.strategy.pipeline.schedule = schedule.value;
        s.strategy.pipeline.chunks = one ? 1 : 2;
      }));
    }
    check_equal(all);
  }
}

TEST_CASE("twenty runs of the same have the same bits") {
  std::vector<Scenario> all(static_cast<std::size_t>(test::scaled(20)),
                            with(base(), [](Scenario& s) {
                              s.training.dropout = 0.2;
                              s.training.accumulate = 2;
                              s.training.clip_norm = 0.1;
                              s.strategy.data.kind = DataKind::kFsdp;
                              s.strategy.data.degree = 2;
                              s.strategy.tensor.degree = 2;
                              s.strategy.tensor.sequence_parallel = true;
                            }));
  check_equal(all);
}

TEST_CASE("dropout of two ranks is that of one rank's two micro-batches, to the last digits") {
  const Scenario two_ranks = with(base(), [](Scenario& s) {
    s.training.precision = Precision::kFp64;
    s.training.dropout = 0.2;
    s.strategy.data.degree = 2;
  });
  const Scenario accumulated = with(base(), [](Scenario& s) {
    s.training.precision = Precision::kFp64;
    s.training.dropout = 0.2;
    s.training.accumulate = 2;
  });
  const test::RunResult a = test::run_for_real(two_ranks, kSteps);
  const test::RunResult b = test::run_for_real(accumulated, kSteps);
  CHECK(test::difference(a, b).relative <= 1e-12);
}

}  // namespace lockstep
