#include "core/io/trace_io.h"

#include <filesystem>
#include <functional>

#include "core/error.h"
#include "core/io/scenario_io.h"
#include "core/plan_fingerprint.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

bool same(const Span& a, const Span& b) {
  return a.operation == b.operation && a.state == b.state && a.issued == b.issued &&
         a.arrived == b.arrived && a.started == b.started && a.ended == b.ended;
}

void check_same(const Trace& a, const Trace& b) {
  CHECK(a.source == b.source);
  CHECK(a.facts == b.facts);
  REQUIRE(a.stalls.size() == b.stalls.size());
  for (std::size_t i = 0; i < a.stalls.size(); ++i) {
    CHECK(a.stalls[i].rank == b.stalls[i].rank);
    CHECK(a.stalls[i].operation == b.stalls[i].operation);
    CHECK(a.stalls[i].since == b.stalls[i].since);
    CHECK(a.stalls[i].missing == b.stalls[i].missing);
  }
  REQUIRE(a.steps.size() == b.steps.size());
  for (std::size_t s = 0; s < a.steps.size(); ++s) {
    CHECK(a.steps[s].section == b.steps[s].section);
    CHECK(a.steps[s].iteration == b.steps[s].iteration);
    CHECK(a.steps[s].begin == b.steps[s].begin);
    CHECK(a.steps[s].end == b.steps[s].end);
    CHECK(a.steps[s].track_of_rank == b.steps[s].track_of_rank);
    REQUIRE(a.steps[s].tracks.size() == b.steps[s].tracks.size());
    for (std::size_t t = 0; t < a.steps[s].tracks.size(); ++t) {
      const TraceTrack& one = a.steps[s].tracks[t];
      const TraceTrack& other = b.steps[s].tracks[t];
      CHECK(one.class_index == other.class_index);
      CHECK(one.ranks == other.ranks);
      CHECK(std::equal(
          one.spans.begin(), one.spans.end(), other.spans.begin(), other.spans.end(), same));
    }
  }
}

struct Run {
  Scenario scenario;
  Plan plan;
  Trace trace;
};

Run some_run(const PlanOptions& options = {}) {
  Run run;
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.pipeline.degree = 2;
  scenario.training.accumulate = 2;
  run.scenario = resolved(scenario);
  run.plan = make_plan(run.scenario, options);
  std::mt19937_64 random(test::test_seed());
  run.trace = test::random_trace(run.plan, test::steady_section(run.plan), random);
  run.trace.source = TraceSource::kMeasured;
  run.trace.facts = {{"host", "a b"}, {"seed", "1"}};
  run.trace.stalls = {{1, 7, 12345, {0}}};
  run.trace.steps[0].tracks[1].spans[3].state = SpanState::kArrived;
  run.trace.steps[0].tracks[1].spans[3].issued = -5;
  return run;
}

std::string encoded(const Run& run) {
  return encode_trace(
      {scenario_text(run.scenario), plan_fingerprint(run.plan), true, true, run.trace});
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const BadInputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal_of(const std::string& bytes) {
  return refusal([&] { decode_trace(bytes, "file"); });
}

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a trace survives the way through a file, whatever sections its plan had") {
  const TemporaryFolder folder;
  for (const bool all : {true, false}) {
    const Run run = some_run({.evaluate = all, .save = all});
    save_trace(folder.file("a.trace"), run.scenario, run.plan, run.trace);
    const LoadedTrace loaded = load_trace(folder.file("a.trace"));
    check_same(loaded.trace, run.trace);
    CHECK(scenario_text(loaded.scenario) == scenario_text(run.scenario));
    CHECK(plan_fingerprint(loaded.plan) == plan_fingerprint(run.plan));
  }
  // Nothing else is left in the folder: the temporary file became the file.
  CHECK(folder.entries() == 1);
}

TEST_CASE("every way in which a file can be wrong has its own message") {
  const Run run = some_run();
  const std::string good = encoded(run);
  CHECK(refusal_of(good) == "accepted");
  CHECK_THAT(refusal_of(""), ContainsSubstring("not a Lockstep trace"));
  CHECK_THAT(refusal_of("{\"traceEvents\": []}"), ContainsSubstring("not a Lockstep trace"));
  CHECK_THAT(refusal_of(good.substr(0, 20)), ContainsSubstring("not even a header"));
  CHECK_THAT(refusal_of(good.substr(0, good.size() / 2)), ContainsSubstring("truncated"));
  CHECK_THAT(refusal_of(good + "x"), ContainsSubstring("1 bytes too many"));
  std::string newer = good;
  newer[8] = 2;
  CHECK_THAT(refusal_of(newer), ContainsSubstring("version 2 is newer"));
  std::string flipped = good;
  flipped[good.size() - 9] = static_cast<char>(flipped[good.size() - 9] ^ 1);
  CHECK_THAT(refusal_of(flipped), ContainsSubstring("checksum"));
  const TemporaryFolder folder;
  CHECK_THAT(refusal([&] { load_trace(folder.file("none")); }),
             ContainsSubstring("cannot be read"));
}

TEST_CASE("a file whose scenario gives another plan is refused") {
  const TemporaryFolder folder;
  const Run run = some_run();
  const std::string bytes = encode_trace(
      {scenario_text(run.scenario), plan_fingerprint(run.plan) + 1, true, true, run.trace});
  const std::string path = folder.write("b.trace", bytes);
  CHECK_THAT(refusal([&] { load_trace(path); }), ContainsSubstring("another plan"));
}

TEST_CASE("spans that do not belong to the plan are refused when a file is loaded") {
  const TemporaryFolder folder;
  Run run = some_run();
  run.trace.steps[0].tracks[0].spans.pop_back();
  save_trace(folder.file("c.trace"), run.scenario, run.plan, run.trace);
  CHECK_THAT(refusal([&] { load_trace(folder.file("c.trace")); }), ContainsSubstring("spans"));
}

TEST_CASE("a file is whole or as it was: writing into a missing folder leaves nothing") {
  const TemporaryFolder folder;
  const Run run = some_run();
  CHECK_THROWS_AS(save_trace(folder.file("no/such/d.trace"), run.scenario, run.plan, run.trace),
                  NotSupportedError);
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("a changed byte anywhere, with the checksum made right, is read or refused") {
  const Run run = some_run();
  const std::string good = encoded(run);
  std::mt19937_64 random(test::test_seed());
  for (int i = 0; i < test::scaled(3000); ++i) {
    std::string bad = good;
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    seal_trace(bad);
    const std::string message = refusal_of(bad);
    REQUIRE(message.find('\n') == std::string::npos);
  }
}

TEST_CASE("a length that the file cannot hold is refused before memory is taken for it") {
  const Run run = some_run();
  Trace empty = run.trace;
  empty.steps.clear();
  empty.stalls.clear();
  empty.facts.clear();
  std::string bytes = encode_trace({"", 0, true, true, empty});
  bytes.pop_back();                             // the number of steps
  bytes += "\xff\xff\xff\xff\xff\xff\xff\x7f";  // is 2^56 - 1
  seal_trace(bytes);
  CHECK_THAT(refusal_of(bytes), ContainsSubstring("longer than the file"));
}

TEST_CASE("a million spans fit into 16 MB and are read back whole") {
  Trace trace;
  TraceStep& step = trace.steps.emplace_back();
  std::mt19937_64 random(test::test_seed());
  for (std::int32_t rank = 0; rank < 10; ++rank) {
    TraceTrack& track = step.tracks.emplace_back();
    track.ranks = {rank};
    Nanoseconds now = 0;
    for (std::uint32_t i = 0; i < 100'000; ++i) {
      const Nanoseconds start = now + static_cast<Nanoseconds>(random() % 1000);
      now = start + static_cast<Nanoseconds>(random() % 1'000'000);
      track.spans.push_back({2 * i, SpanState::kDone, start / 2, start, start, now});
    }
    step.end = std::max(step.end, now);
  }
  const std::string bytes = encode_trace({"", 0, true, true, trace});
  CHECK(bytes.size() < 16'000'000);
  const TraceFile file = decode_trace(bytes, "file");
  REQUIRE(file.trace.steps.size() == 1);
  REQUIRE(file.trace.steps[0].tracks.size() == 10);
  for (const TraceTrack& track : file.trace.steps[0].tracks) {
    REQUIRE(track.spans.size() == 100'000);
  }
  CHECK(encode_trace(file) == bytes);
}

}  // namespace
}  // namespace lockstep
