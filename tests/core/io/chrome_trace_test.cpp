#include "core/io/chrome_trace.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/memory_timeline.h"
#include "core/planner/planner.h"
#include "core/trace_index.h"
#include "tests/support/catch.h"
#include "tests/support/chrome_trace_checker.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

using test::check_chrome_trace;
using test::ChromeTraceFacts;

std::string exported(const Plan& plan, const Trace& trace, const ChromeTraceOptions& options = {}) {
  std::string text;
  write_chrome_trace([&](std::string_view piece) { text += piece; }, plan, trace, options);
  return text;
}

struct Run {
  Plan plan;
  Trace trace;
};

Run pipeline_run() {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.pipeline.degree = 2;
  scenario.strategy.data.kind = DataKind::kDdp;
  scenario.strategy.data.degree = 2;
  scenario.training.accumulate = 3;
  Run run{make_plan(resolved(scenario)), {}};
  std::mt19937_64 random(test::test_seed());
  run.trace = test::random_trace(run.plan, test::steady_section(run.plan), random);
  return run;
}

TEST_CASE("the checker finds what Perfetto complains about") {
  const auto problems = [](const std::string& events) {
    return check_chrome_trace("{\"traceEvents\":[" + events + "]}").problems;
  };
  const std::string names =
      R"({"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"p"}},)"
      R"({"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"t"}},)";
  const std::string slice = R"({"ph":"X","pid":1,"tid":1,"ts":1,"dur":4,"name":"a"})";
  CHECK(problems(names + slice).empty());
  CHECK(problems(names + slice + R"(,{"ph":"X","pid":1,"tid":1,"ts":2.5,"dur":1,"name":"b"})")
            .empty());
  CHECK(
      problems(names + slice + R"(,{"ph":"X","pid":1,"tid":1,"ts":2,"dur":4,"name":"b"})")[0].find(
          "overlap") != std::string::npos);
  CHECK(problems(names + R"({"ph":"X","pid":1,"tid":1,"dur":4,"name":"a"})").size() == 1);
  CHECK(problems(names + R"({"ph":"X","pid":1,"tid":1,"ts":1,"name":"a"})").size() == 1);
  CHECK(problems(slice).size() == 2);  // neither process nor thread has a name
  CHECK(problems(names + slice +
                 R"(,{"ph":"s","pid":1,"tid":1,"ts":1,"id":7,"name":"f","cat":"c"})")[0]
            .find("never ends") != std::string::npos);
  CHECK(
      problems(names + slice + R"(,{"ph":"s","pid":1,"tid":1,"ts":9,"id":7,"name":"f","cat":"c"})")
          .size() == 2);
  CHECK_FALSE(problems(names + R"({"ph":"X","pid":1,"tid":0,"ts":1,"dur":4,"name":"a"})").empty());
  CHECK_FALSE(problems("{\"ph\":\"X\",\"name\":\"a\x01\"}").empty());
  CHECK_FALSE(check_chrome_trace("{\"traceEvents\":[").problems.empty());
}

TEST_CASE("exports of every strategy pass the checker, slice for span") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name << ", seed " << test::test_seed());
    const Plan plan = make_plan(it.scenario);
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const ChromeTraceFacts facts = check_chrome_trace(exported(plan, trace));
    CHECK(facts.problems == std::vector<std::string>{});
    const auto ranks = static_cast<std::size_t>(plan.mesh.world_size());
    CHECK(facts.processes.size() == ranks);
    std::int64_t expected = static_cast<std::int64_t>(ranks);  // one slice for the step
    std::int64_t sends = 0;
    const TraceIndex index(plan, trace.steps[0]);
    for (int track = 0; track < index.track_count(); ++track) {
      for (const Span& span : index.track(track).spans) {
        const Operation& op = index.operation({track, span.operation});
        const bool message = op.kind == OperationKind::kCollective || op.peer != kNoPeer;
        expected += 1 + (message && span.started > span.arrived ? 1 : 0);
        sends += op.kind == OperationKind::kSend ? 1 : 0;
      }
    }
    CHECK(facts.slices == expected);
    CHECK(facts.flows == sends);
  }
}

TEST_CASE("time on every thread and the memory counters are those of the trace") {
  const Run run = pipeline_run();
  const ChromeTraceFacts facts = check_chrome_trace(exported(run.plan, run.trace));
  const TraceIndex index(run.plan, run.trace.steps[0]);
  for (int rank = 0; rank < 4; ++rank) {
    std::int64_t compute = 0;
    for (const Span& span : index.track(rank).spans) {
      const Operation& op = index.operation({rank, span.operation});
      compute += op.stream == Stream::kCompute ? span.ended - span.started : 0;
    }
    CHECK(facts.busy_ns.at({rank + 1, 1}) == compute);
    CHECK(facts.threads.at({rank + 1, 1}) == "compute");
    CHECK(facts.processes.at(rank + 1) == "rank " + std::to_string(rank));
    double activations = 0;
    for (const MemorySample& sample : memory_timeline(index, rank)) {
      activations = std::max(
          activations,
          static_cast<double>(sample.bytes[static_cast<std::size_t>(Category::kActivation)]));
    }
    CHECK(facts.highest_counter.at({rank + 1, "activation"}) == activations);
  }
}

TEST_CASE("chosen ranks are exported, arrows only between them") {
  const Run run = pipeline_run();
  // Ranks 0, 1 are stage 0, ranks 2, 3 stage 1: 0 and 2 exchange messages, 0 and 1 do not.
  const ChromeTraceFacts both =
      check_chrome_trace(exported(run.plan, run.trace, {.ranks = {2, 0}}));
  CHECK(both.problems == std::vector<std::string>{});
  CHECK(both.processes.size() == 2);
  CHECK(both.flows == 6);  // three micro-batches, one activation and one gradient each
  const ChromeTraceFacts one = check_chrome_trace(exported(run.plan, run.trace, {.ranks = {0, 1}}));
  CHECK(one.problems == std::vector<std::string>{});
  CHECK(one.flows == 0);
  const ChromeTraceFacts bare = check_chrome_trace(
      exported(run.plan, run.trace, {.ranks = {0}, .memory = false, .flows = false}));
  CHECK(bare.counters == 0);
  CHECK_THROWS_AS(exported(run.plan, run.trace, {.ranks = {4}}), UsageError);
}

TEST_CASE("several steps follow each other on the same threads") {
  Run run = pipeline_run();
  TraceStep second = run.trace.steps[0];
  const Nanoseconds shift = second.end;
  second.iteration = 1;
  second.begin += shift;
  second.end += shift;
  for (TraceTrack& track : second.tracks) {
    for (Span& span : track.spans) {
      for (Nanoseconds* time : {&span.issued, &span.arrived, &span.started, &span.ended}) {
        *time += shift;
      }
    }
  }
  const std::int64_t slices = check_chrome_trace(exported(run.plan, run.trace)).slices;
  run.trace.steps.push_back(second);
  const ChromeTraceFacts facts = check_chrome_trace(exported(run.plan, run.trace));
  CHECK(facts.problems == std::vector<std::string>{});
  CHECK(facts.slices == 2 * slices);
}

TEST_CASE("clocks that contradict each other still give slices that nest") {
  Run run = pipeline_run();
  std::mt19937_64 random(test::test_seed());
  const auto most = static_cast<std::uint64_t>(run.trace.steps[0].end);
  for (TraceTrack& track : run.trace.steps[0].tracks) {
    for (Span& span : track.spans) {
      span.started = static_cast<Nanoseconds>(random() % most);
      span.ended = static_cast<Nanoseconds>(random() % most);
    }
  }
  const ChromeTraceFacts facts =
      check_chrome_trace(exported(run.plan, run.trace, {.flows = false}));
  CHECK(facts.problems == std::vector<std::string>{});
}

TEST_CASE("a sink that refuses ends the export") {
  const Run run = pipeline_run();
  const auto refuse = [](std::string_view) { throw NotSupportedError("disk", "full"); };
  CHECK_THROWS_AS(write_chrome_trace(refuse, run.plan, run.trace), NotSupportedError);
}

}  // namespace
}  // namespace lockstep
