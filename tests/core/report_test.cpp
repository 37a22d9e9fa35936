#include "core/report.h"

#include <algorithm>

#include "core/error.h"
#include "core/memory_report.h"
#include "core/module_cost.h"
#include "core/plan_text.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

Report report_of(const Scenario& scenario, std::mt19937_64& random) {
  const Plan plan = make_plan(scenario);
  const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
  return make_report(plan, trace, report_facts(scenario));
}

/// Narayanan et al. 2021 (arXiv:2104.04473), section 5.1: 96 B s l h^2 (1 + s/6h + V/16lh) for four
/// passes over the blocks (forward, recompute, backward twice) and three over the head.
double published_flops(const Scenario& it, double passes) {
  const auto b = static_cast<double>(samples_per_step(it));
  const auto s = static_cast<double>(it.training.seq_len);
  const auto l = static_cast<double>(it.model.layers);
  const auto h = static_cast<double>(it.model.hidden);
  const auto v = static_cast<double>(it.model.vocab);
  return passes * 24 * b * s * l * h * h * (1 + s / (6 * h)) + 6 * b * s * h * v;
}

/// The form of that formula: GELU blocks 4 h wide, multi-head attention, no dropout in flight.
Scenario megatron_form() {
  Scenario scenario = test::tiny_gpt();
  scenario.model.intermediate = 4 * scenario.model.hidden;
  scenario.training.attention = AttentionKind::kPlain;
  scenario.training.accumulate = 3;
  return scenario;
}

TEST_CASE("model and hardware FLOPs are those of Narayanan et al. 2021") {
  std::mt19937_64 random(test::test_seed());
  Scenario scenario = megatron_form();
  scenario.strategy.data.kind = DataKind::kDdp;
  scenario.strategy.data.degree = 2;
  const Report plain = report_of(resolved(scenario), random);
  CHECK(plain.model_flops == Approx(published_flops(resolved(scenario), 3)));
  CHECK(plain.hardware_flops == Approx(plain.model_flops));
  scenario.training.recompute = Recompute::kFull;
  const Report recomputed = report_of(resolved(scenario), random);
  CHECK(recomputed.model_flops == Approx(published_flops(resolved(scenario), 3)));
  CHECK(recomputed.hardware_flops == Approx(published_flops(resolved(scenario), 4)));
}

TEST_CASE("a flash kernel's second look at the scores is hardware work, not the model's") {
  std::mt19937_64 random(test::test_seed());
  Scenario scenario = megatron_form();
  scenario.training.attention = AttentionKind::kFlash;
  const Scenario flash = resolved(scenario);
  const Report report = report_of(flash, random);
  CHECK(report.model_flops == Approx(published_flops(flash, 3)));
  // One product Q K^T more per block: 2 b s^2 h.
  const auto s = static_cast<double>(flash.training.seq_len);
  const double again = 2.0 * static_cast<double>(samples_per_step(flash)) * s * s *
                       static_cast<double>(flash.model.hidden * flash.model.layers);
  CHECK(report.hardware_flops - report.model_flops == Approx(again));
}

TEST_CASE("utilisation divides FLOPs by time, peak and devices") {
  Report report;
  report.devices = 4;
  report.step_time = 500'000'000;
  report.tokens = 8000;
  report.model_flops = 1e15;
  report.hardware_flops = 1.5e15;
  report.peak_flops = 1e15;
  CHECK(report.tokens_per_s() == Approx(16000));
  CHECK(report.tokens_per_s_per_device() == Approx(4000));
  CHECK(report.flops_per_device() == Approx(5e14));  // 1e15 / 0.5 s / 4
  CHECK(report.mfu() == Approx(0.5));
  CHECK(report.hfu() == Approx(0.75));
  report.peak_flops = 0;
  CHECK(report.mfu() == 0);
}

TEST_CASE("DDP sends two (n-1)/n of its fp32 gradients") {
  std::mt19937_64 random(test::test_seed());
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.data.kind = DataKind::kDdp;
  scenario.strategy.data.degree = 4;
  const Scenario done = resolved(scenario);
  const Report report = report_of(done, random);
  double sent = 0;
  for (const ReportTraffic& it : report.traffic) {
    sent += it.control ? 0 : it.sent_bytes;
  }
  CHECK(sent == Approx(2.0 * 3 / 4 * 4 * static_cast<double>(parameter_count(done.model))));
}

TEST_CASE("what stages send is averaged over ranks, so that times ranks gives all bytes") {
  std::mt19937_64 random(test::test_seed());
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.pipeline.degree = 2;
  scenario.training.accumulate = 4;
  const Scenario done = resolved(scenario);
  const Report report = report_of(done, random);
  const auto found =
      std::find_if(report.traffic.begin(), report.traffic.end(), [](const ReportTraffic& it) {
        return it.group == "pp" && it.kind == "send";
      });
  REQUIRE(found != report.traffic.end());
  // Four micro-batches, one activation forward and one gradient backward each, fp32.
  const auto message = static_cast<double>(done.training.micro_batch * done.training.seq_len *
                                           done.model.hidden * 4);
  CHECK(found->sent_bytes * 2 == Approx(4 * 2 * message));
  CHECK(found->messages * 2 == Approx(8));
}

TEST_CASE("the peak is that of the memory report wherever the repeating step holds most") {
  std::mt19937_64 random(test::test_seed());
  int compared = 0;
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name);
    const Plan plan = make_plan(it.scenario);
    const int section = test::steady_section(plan);
    const MemoryReport memory = memory_report(it.scenario);
    for (const RankMemory& rank : memory.ranks) {
      if (rank.peak_section != section_text(plan, section)) {
        continue;  // init, or a first form of the step
      }
      const MemoryMoment peak = highest_memory(plan, rank.class_index, section);
      CHECK(peak.bytes == rank.bytes);
      ++compared;
    }
  }
  CHECK(compared > 20);
}

TEST_CASE("memory over time reaches the peak, never runs back, and ends where the step ends") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name);
    const Plan plan = make_plan(it.scenario);
    const int section = test::steady_section(plan);
    const Trace trace = test::random_trace(plan, section, random);
    const TraceIndex index(plan, trace.steps[0]);
    for (int track = 0; track < index.track_count(); ++track) {
      const int class_index = index.track(track).class_index;
      const std::vector<MemorySample> samples = memory_timeline(index, track);
      std::int64_t most = 0;
      Nanoseconds time = trace.steps[0].begin;
      for (const MemorySample& sample : samples) {
        REQUIRE(sample.time >= time);
        time = sample.time;
        most = std::max(most, total(sample.bytes));
      }
      REQUIRE(time <= trace.steps[0].end);
      REQUIRE(most == total(highest_memory(plan, class_index, section).bytes));
      const Program& program = *index.program(track).program;
      const CategoryBytes start = bytes_before(plan, class_index, section);
      REQUIRE(samples.front().bytes == start);
      REQUIRE(samples.back().bytes == summarize(plan, class_index, program, start).at_end);
    }
  }
}

TEST_CASE("a trace of another plan is refused with the place that differs") {
  std::mt19937_64 random(test::test_seed());
  const Scenario scenario = resolved(test::tiny_gpt());
  const Plan plan = make_plan(scenario);
  const Trace good = test::random_trace(plan, test::steady_section(plan), random);
  const auto message = [&](const Trace& trace) {
    try {
      make_report(plan, trace, {});
    } catch (const BadInputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(message(good) == "accepted");
  CHECK_THAT(message({}), Catch::Matchers::ContainsSubstring("no step"));
  Trace bad = good;
  bad.steps[0].tracks[0].spans.pop_back();
  CHECK_THAT(message(bad), Catch::Matchers::ContainsSubstring("spans"));
  bad = good;
  bad.steps[0].tracks[0].spans[3].operation += 1;
  CHECK_THAT(message(bad), Catch::Matchers::ContainsSubstring("is due"));
  bad = good;
  bad.steps[0].track_of_rank = {};
  CHECK_THAT(message(bad), Catch::Matchers::ContainsSubstring("ranks"));
  bad = good;
  bad.steps[0].section = 99;
  CHECK_THAT(message(bad), Catch::Matchers::ContainsSubstring("section"));
}

}  // namespace
}  // namespace lockstep
