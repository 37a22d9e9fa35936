// Every overlap pattern of two ranks with its split worked out by hand (times in ns), and the sum
// on random traces of every strategy.
#include "core/time_split.h"

#include "core/critical_path.h"
#include "core/planner/planner.h"
#include "core/report.h"
#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

using test::hand_all_reduce;
using test::hand_buffer;
using test::hand_compute;
using test::HandStep;
using test::mesh_of;

constexpr AxisMask kData = mask_of(Axis::kData);
constexpr AxisMask kStages = mask_of(Axis::kPipeline);

/// "0-2 compute #1, 2-4 waiting #2, ...": the operation is the number of its span.
std::string text_of(HandStep& step, int track) {
  const TraceIndex index(step.plan(), step.step());
  std::string text;
  for (const TimeSegment& it : split_time(index, track)) {
    text += (text.empty() ? "" : ", ") + std::to_string(it.begin) + "-" + std::to_string(it.end) +
            " " + std::string(name_of(it.kind));
    if (it.operation != kNoSpan) {
      text += " #" + std::to_string(index.program(track).slot[it.operation]);
    }
  }
  return text;
}

std::string path_of(HandStep& step) {
  const TraceIndex index(step.plan(), step.step());
  std::string text;
  for (const PathSegment& it : critical_path(index)) {
    text += (text.empty() ? "" : ", ") + std::to_string(it.begin) + "-" + std::to_string(it.end) +
            " " + std::string(name_of(it.cause)) + " on " + std::to_string(it.track);
  }
  return text;
}

/// Computes, reduces, computes beside the reduction, computes with its result.
void overlap(ProgramBuilder& b, std::uint8_t group) {
  const BufferId x = hand_buffer(b);
  const BufferId y = hand_buffer(b);
  hand_compute(b, x, x);
  hand_all_reduce(b, group, x);
  hand_compute(b, y, y);
  hand_compute(b, x, x);
}

TEST_CASE("a gap before a reduction's reader is waiting until all have come, then transfer") {
  HandStep step(mesh_of(1, 2));
  const std::uint8_t dp = step.group(kData);
  step.rank([&](ProgramBuilder& b) { overlap(b, dp); });
  step.rank([&](ProgramBuilder& b) { overlap(b, dp); });
  step.spans(0, {{0, 0, 0, 2}, {0, 2, 5, 8}, {0, 2, 2, 4}, {0, 8, 8, 9}});
  step.spans(1, {{0, 0, 0, 5}, {0, 5, 5, 8}, {0, 5, 5, 7}, {0, 8, 8, 9}});
  CHECK(text_of(step, 0) ==
        "0-2 compute #0, 2-4 compute #2, 4-5 waiting #1, 5-8 exposed #1, 8-9 compute #3");
  CHECK(text_of(step, 1) == "0-5 compute #0, 5-7 compute #2, 7-8 exposed #1, 8-9 compute #3");
  // The late rank's first computation, the transfer, and the last computation of either rank.
  CHECK(path_of(step) == "0-5 compute on 1, 5-8 communication on 0, 8-9 compute on 0");
}

TEST_CASE("the report names who waited for whom and what a reduction cost each rank") {
  HandStep step(mesh_of(1, 2));
  const std::uint8_t dp = step.group(kData);
  step.rank([&](ProgramBuilder& b) { overlap(b, dp); });
  step.rank([&](ProgramBuilder& b) { overlap(b, dp); });
  step.spans(0, {{0, 0, 0, 2}, {0, 2, 5, 8}, {0, 2, 2, 4}, {0, 8, 8, 9}});
  step.spans(1, {{0, 0, 0, 5}, {0, 5, 5, 8}, {0, 5, 5, 7}, {0, 8, 8, 9}});
  const Report report = make_report(step.plan(), step.trace(), {1000, 0});
  REQUIRE(report.groups[0].name == "dp");
  CHECK(report.ranks[0].time.compute == 5);
  CHECK(report.ranks[0].time.exposed[0] == 3);
  CHECK(report.ranks[0].time.waiting[0] == 1);
  CHECK(report.ranks[1].time.compute == 8);
  CHECK(report.ranks[1].time.exposed[0] == 1);
  CHECK(report.mean_exposed_s(0) == Approx(2e-9));
  CHECK(report.exposed_fraction() == Approx(2.5 / 9));
  CHECK(report.tokens_per_s() == Approx(1000 / 9e-9));
  REQUIRE(report.waits.size() == 1);
  CHECK(report.waits[0].rank == 0);
  CHECK(report.waits[0].for_rank == 1);
  CHECK(report.waits[0].time == 1);
  CHECK(report.straggler_total(1) == 1);
  CHECK(report.bubble_fraction() == 0);
}

TEST_CASE("an operation that was issued last of all waited for the host") {
  HandStep step(mesh_of(1, 1));
  step.rank([&](ProgramBuilder& b) {
    const BufferId x = hand_buffer(b);
    hand_compute(b, x, x);
    hand_compute(b, x, x);
  });
  step.spans(0, {{1, 1, 1, 3}, {7, 7, 7, 9}});
  CHECK(text_of(step, 0) == "0-1 host #0, 1-3 compute #0, 3-7 host #1, 7-9 compute #1");
  CHECK(path_of(step) == "0-7 host on 0, 7-9 compute on 0");
}

TEST_CASE("what the host waited for takes its part of the gap") {
  HandStep step(mesh_of(1, 2));
  const std::uint8_t dp = step.group(kData);
  for (int rank = 0; rank < 2; ++rank) {
    step.rank([&](ProgramBuilder& b) {
      const BufferId x = hand_buffer(b);
      const BufferId y = hand_buffer(b);
      hand_compute(b, x, x);
      hand_all_reduce(b, dp, x, kHostSync);
      hand_compute(b, y, y);  // needs nothing of it, but the host stood still
    });
  }
  step.spans(0, {{0, 0, 0, 2}, {0, 2, 3, 6}, {7, 7, 7, 9}});
  step.spans(1, {{0, 0, 0, 3}, {0, 3, 3, 6}, {8, 8, 8, 9}});
  CHECK(text_of(step, 0) ==
        "0-2 compute #0, 2-3 waiting #1, 3-6 exposed #1, 6-7 host #2, 7-9 compute #2");
  CHECK(text_of(step, 1) == "0-3 compute #0, 3-6 exposed #1, 6-8 host #2, 8-9 compute #2");
}

TEST_CASE("communication that waited for communication passes the gap on") {
  HandStep step(mesh_of(1, 2));
  const std::uint8_t dp = step.group(kData);
  const std::uint8_t other = step.group(kData, true);
  for (int rank = 0; rank < 2; ++rank) {
    step.rank([&](ProgramBuilder& b) {
      const BufferId x = hand_buffer(b);
      hand_compute(b, x, x);
      hand_all_reduce(b, dp, x);
      hand_all_reduce(b, other, x, kControl);
      hand_compute(b, x, x);
    });
  }
  step.spans(0, {{0, 0, 0, 2}, {0, 2, 2, 5}, {0, 5, 6, 7}, {0, 7, 7, 8}});
  step.spans(1, {{0, 0, 0, 2}, {0, 2, 2, 5}, {6, 6, 6, 7}, {0, 7, 7, 8}});
  CHECK(text_of(step, 0) ==
        "0-2 compute #0, 2-5 exposed #1, 5-6 waiting #2, 6-7 exposed #2, 7-8 compute #3");
  // Rank 1 was late because its host was.
  CHECK(text_of(step, 1) == "0-2 compute #0, 2-6 host #2, 6-7 exposed #2, 7-8 compute #3");
  const Report report = make_report(step.plan(), step.trace(), {});
  CHECK_FALSE(report.groups[0].control);
  CHECK(report.groups[1].control);
  CHECK(report.ranks[0].time.exposed[0] == 3);
  CHECK(report.ranks[0].time.exposed[1] == 1);
}

TEST_CASE("a stage that waits for its input or its peer is in the bubble") {
  HandStep step(mesh_of(2, 1));
  const std::uint8_t pp = step.group(kStages);
  step.rank([&](ProgramBuilder& b) {
    const BufferId x = hand_buffer(b);
    hand_compute(b, x, x);
    b.send(pp, 1, 0, b.whole(x));
    const BufferId dx = hand_buffer(b);
    b.recv(pp, 1, 1, b.whole(dx));
    hand_compute(b, dx, dx);
  });
  step.rank([&](ProgramBuilder& b) {
    const BufferId y = hand_buffer(b);
    b.recv(pp, 0, 0, b.whole(y));
    hand_compute(b, y, y);
    b.send(pp, 0, 1, b.whole(y));
  });
  step.spans(0, {{0, 0, 0, 3}, {0, 3, 3, 4}, {0, 0, 6, 7}, {0, 7, 7, 9}});
  step.spans(1, {{0, 0, 3, 4}, {0, 4, 4, 6}, {0, 6, 6, 7}});
  CHECK(text_of(step, 0) == "0-3 compute #0, 3-6 bubble #2, 6-7 exposed #2, 7-9 compute #3");
  CHECK(text_of(step, 1) ==
        "0-3 bubble #0, 3-4 exposed #0, 4-6 compute #1, 6-7 exposed #2, "
        "7-9 bubble");
  CHECK(path_of(step) ==
        "0-3 compute on 0, 3-4 communication on 1, 4-6 compute on 1, "
        "6-7 communication on 0, 7-9 compute on 0");
  const Report report = make_report(step.plan(), step.trace(), {});
  CHECK(report.bubble_fraction() == Approx((3.0 + 5.0) / 18.0));
}

TEST_CASE("copies on another stream count for the group that they serve") {
  HandStep step(mesh_of(1, 2));
  const std::uint8_t dp = step.group(kData);
  for (int rank = 0; rank < 2; ++rank) {
    step.rank([&](ProgramBuilder& b) {
      const BufferId x = hand_buffer(b);
      b.compute(Work::kPack, {{64}}, {b.whole(x)}, {b.whole(x)}, {.stream = Stream::kCopy});
      hand_all_reduce(b, dp, x);
      hand_compute(b, x, x);
    });
    step.spans(rank, {{0, 0, 0, 2}, {0, 2, 2, 5}, {0, 5, 5, 6}});
  }
  CHECK(text_of(step, 0) == "0-2 exposed #0, 2-5 exposed #1, 5-6 compute #2");
  const Report report = make_report(step.plan(), step.trace(), {});
  CHECK(report.ranks[0].time.exposed[0] == 5);
}

TEST_CASE("recomputation is told from computation, and the end without pipeline is idle") {
  HandStep step(mesh_of(1, 1));
  step.rank([&](ProgramBuilder& b) {
    const BufferId x = hand_buffer(b);
    b.at_phase(Phase::kRecompute);
    hand_compute(b, x, x);
    b.at_phase(Phase::kBackward);
    hand_compute(b, x, x);
  });
  step.spans(0, {{0, 0, 0, 4}, {0, 4, 4, 6}});
  step.end(10);
  CHECK(text_of(step, 0) == "0-4 recompute #0, 4-6 compute #1, 6-10 idle");
}

TEST_CASE("a rank whose peer never came waits until the end") {
  HandStep step(mesh_of(1, 2));
  const std::uint8_t dp = step.group(kData);
  step.rank([&](ProgramBuilder& b) { overlap(b, dp); });
  step.rank([&](ProgramBuilder& b) { overlap(b, dp); });
  step.spans(0, {{0, 0, 0, 2}, {0, 2, 0, 0}, {0, 2, 2, 4}, {0, 0, 0, 0}});
  step.spans(1, {{0, 0, 0, 3}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}});
  step.span(0, 1).state = SpanState::kArrived;
  step.span(0, 3).state = SpanState::kIssued;
  step.span(1, 0).state = SpanState::kRunning;
  for (const std::size_t planned : {1, 2, 3}) {
    step.span(1, planned).state = SpanState::kPlanned;
  }
  step.end(100);
  CHECK(text_of(step, 0) == "0-2 compute #0, 2-4 compute #2, 4-100 waiting #1");
  CHECK(text_of(step, 1) == "0-3 compute #0, 3-100 idle");  // it died
}

/// Tiles the step, and what the compute stream ran is compute or recompute to the nanosecond.
void check_tiles(const TraceIndex& index, int track, bool exact) {
  Nanoseconds cursor = index.step().begin;
  Nanoseconds computed = 0;
  for (const TimeSegment& it : split_time(index, track)) {
    REQUIRE(it.begin == cursor);
    REQUIRE(it.end > it.begin);
    cursor = it.end;
    computed += it.kind == TimeKind::kCompute || it.kind == TimeKind::kRecompute ? it.end - it.begin
                                                                                 : Nanoseconds{0};
  }
  REQUIRE(cursor == index.step().end);
  if (exact) {
    Nanoseconds ran = 0;
    for (const Span& span : index.track(track).spans) {
      const Operation& op = index.operation({track, span.operation});
      ran += op.stream == Stream::kCompute ? span.ended - span.started : Nanoseconds{0};
    }
    REQUIRE(computed == ran);
  }
}

void check_path(const TraceIndex& index) {
  Nanoseconds cursor = index.step().begin;
  for (const PathSegment& it : critical_path(index)) {
    REQUIRE(it.begin == cursor);
    cursor = it.end;
  }
  REQUIRE(cursor == index.step().end);
}

TEST_CASE("the split and the critical path tile the step in random traces of every strategy") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name << ", seed " << test::test_seed());
    const Plan plan = make_plan(it.scenario);
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const TraceIndex index(plan, trace.steps[0]);
    for (int track = 0; track < index.track_count(); ++track) {
      check_tiles(index, track, true);
    }
    check_path(index);
  }
}

TEST_CASE("the split adds up to the step even when a trace's clocks are nonsense") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name << ", seed " << test::test_seed());
    const Plan plan = make_plan(it.scenario);
    Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    for (TraceTrack& track : trace.steps[0].tracks) {
      for (Span& span : track.spans) {
        const auto any = [&] { return static_cast<Nanoseconds>(random() % 2000); };
        span = {span.operation, static_cast<SpanState>(random() % 6), any(), any(), any(), any()};
      }
    }
    const TraceIndex index(plan, trace.steps[0]);
    for (int track = 0; track < index.track_count(); ++track) {
      check_tiles(index, track, false);
    }
    check_path(index);
  }
}

/// In a trace that keeps rule R2, nothing is left unexplained before the rank's last operation, and
/// every instant given to a communication lies between its arrival and its end.
TEST_CASE("every gap of a random trace is explained by what really happened then") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name << ", seed " << test::test_seed());
    const Plan plan = make_plan(it.scenario);
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const TraceIndex index(plan, trace.steps[0]);
    for (int track = 0; track < index.track_count(); ++track) {
      const SpanTimes last = index.times({track, index.last_operation(track)});
      for (const TimeSegment& segment : split_time(index, track)) {
        if (segment.operation == kNoSpan) {
          REQUIRE(segment.begin >= last.ended);
        } else if (segment.kind == TimeKind::kWaiting || segment.kind == TimeKind::kExposed ||
                   segment.kind == TimeKind::kBubble) {
          const SpanTimes times = index.times({track, segment.operation});
          const bool transfer = segment.kind == TimeKind::kExposed;
          REQUIRE(segment.begin >= times.arrived);
          REQUIRE(segment.end <= (transfer ? times.ended : times.started));
        }
      }
    }
    for (const PathSegment& segment : critical_path(index)) {
      REQUIRE(segment.cause != PathCause::kUnexplained);
    }
  }
}

}  // namespace
}  // namespace lockstep
