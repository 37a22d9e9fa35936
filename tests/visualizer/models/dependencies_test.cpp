// What operations waited for, on a case worked out by hand, and on random traces of every strategy
// against a reading of rule R2 that is written here a second time.
#include "visualizer/models/dependencies.h"

#include <algorithm>

#include "core/critical_path.h"
#include "core/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"
#include "tests/support/hand_traces.h"
#include "tests/support/random_scenario.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"
#include "visualizer/models/arrivals.h"
#include "visualizer/models/path_summary.h"
#include "visualizer/models/timeline.h"

namespace lockstep::view {
namespace {

using test::hand_all_reduce;
using test::hand_buffer;
using test::hand_compute;
using test::HandStep;
using test::mesh_of;

/// Computes x, reduces it, computes y beside the reduction, computes with its result. Rank 1 is
/// late.
HandStep late_rank() {
  HandStep step(mesh_of(1, 2));
  const std::uint8_t dp = step.group(mask_of(Axis::kData));
  for (int rank = 0; rank < 2; ++rank) {
    step.rank([&](ProgramBuilder& b) {
      const BufferId x = hand_buffer(b);
      const BufferId y = hand_buffer(b);
      hand_compute(b, x, x);
      hand_all_reduce(b, dp, x);
      hand_compute(b, y, y);
      hand_compute(b, x, x);
    });
  }
  step.spans(0, {{0, 0, 0, 2}, {0, 2, 5, 8}, {0, 2, 2, 4}, {0, 8, 8, 9}});
  step.spans(1, {{0, 0, 0, 5}, {0, 5, 5, 8}, {0, 5, 5, 7}, {0, 8, 8, 9}});
  return step;
}

/// The operation of a rank's span.
TrackOperation span_of(const TraceIndex& index, std::int32_t track, std::size_t number) {
  return {track, index.program(track).operations[number]};
}

std::string text_of(const TraceIndex& index, const std::vector<Link>& links) {
  std::string text;
  for (const Link& it : links) {
    const bool has = it.operation.operation != kNoSpan;
    text +=
        (text.empty() ? "" : ", ") + std::string(name_of(it.kind)) +
        (has ? " " + std::to_string(it.operation.track) + "#" +
                   std::to_string(index.program(it.operation.track).slot[it.operation.operation])
             : "") +
        " at " + std::to_string(it.over) + " slack " + std::to_string(it.slack) +
        (it.determines ? " last" : "");
  }
  return text;
}

TEST_CASE("a reduction waited for the late rank, and for its own input with the slack of that") {
  HandStep step = late_rank();
  const TraceIndex index(step.plan(), step.step());
  CHECK(text_of(index, waited_for(index, span_of(index, 0, 1))) ==
        "peer 1#1 at 5 slack 0 last, result 0#0 at 2 slack 3");
  // The late rank did not wait for the other one, which had come three before.
  CHECK(text_of(index, waited_for(index, span_of(index, 1, 1))) ==
        "result 1#0 at 5 slack 0 last, peer 0#1 at 2 slack 3");
  CHECK(text_of(index, waited_for(index, span_of(index, 0, 3))) ==
        "result 0#1 at 8 slack 0 last, stream 0#2 at 4 slack 4");
  CHECK(waited_for(index, span_of(index, 0, 0)).empty());
}

TEST_CASE("causes are followed through the ranks, back and forward") {
  HandStep step = late_rank();
  const TraceIndex index(step.plan(), step.step());
  TrackOperation at = span_of(index, 0, 3);
  std::string back;
  for (; at.operation != kNoSpan; at = determining(index, at)) {
    back += std::to_string(at.track) + "#" +
            std::to_string(index.program(at.track).slot[at.operation]) + " ";
  }
  CHECK(back == "0#3 0#1 1#1 1#0 ");
  // The late computation let its reduction and the next computation begin.
  const std::vector<TrackOperation> next = determined(index, span_of(index, 1, 0));
  REQUIRE(next.size() == 2);
  CHECK(next[0].operation == span_of(index, 1, 1).operation);
  CHECK(next[1].operation == span_of(index, 1, 2).operation);
  // The late rank's reduction let the other rank's begin, and then its own last computation.
  const std::vector<TrackOperation> after = determined(index, span_of(index, 1, 1));
  REQUIRE(after.size() == 2);
  CHECK(after[0].track == 0);
  CHECK(after[1].operation == span_of(index, 1, 3).operation);
  CHECK(determined(index, span_of(index, 0, 2)).empty());
}

TEST_CASE("what was issued last waited for the host, and through it for what the host waited for") {
  HandStep step(mesh_of(1, 2));
  const std::uint8_t dp = step.group(mask_of(Axis::kData));
  for (int rank = 0; rank < 2; ++rank) {
    step.rank([&](ProgramBuilder& b) {
      const BufferId x = hand_buffer(b);
      const BufferId y = hand_buffer(b);
      hand_compute(b, x, x);
      hand_all_reduce(b, dp, x, kHostSync);
      hand_compute(b, y, y);
    });
    step.spans(rank, {{0, 0, 0, 2}, {0, 2, 2, 6}, {7, 7, 7, 9}});
  }
  const TraceIndex index(step.plan(), step.step());
  CHECK(text_of(index, waited_for(index, span_of(index, 0, 2))) ==
        "issue 0#1 at 7 slack 0 last, stream 0#0 at 2 slack 5");
  CHECK(determining(index, span_of(index, 0, 2)).operation == span_of(index, 0, 1).operation);
  REQUIRE(determined(index, span_of(index, 0, 1)).size() == 1);
  CHECK(determined(index, span_of(index, 0, 1))[0].operation == span_of(index, 0, 2).operation);
}

TEST_CASE("arrivals at a reduction name the last rank and what the others waited") {
  HandStep step = late_rank();
  const TraceIndex index(step.plan(), step.step());
  const Arrivals all(index, span_of(index, 0, 1), 0);
  REQUIRE(all.list().size() == 2);
  CHECK(all.list()[0].rank == 0);
  CHECK(all.list()[0].waited() == 3);
  CHECK(all.list()[1].rank == 1);
  CHECK(all.list()[1].waited() == 0);
  CHECK(all.spread() == 3);
  CHECK(all.waited() == 3);
  CHECK(all.last_behind() == 3);
  CHECK(arrivals_text(all) ==
        "rank 1 came last, 3 ns after the first; the other 1 waited 3 ns in all");
  CHECK(Arrivals(index, span_of(index, 0, 0), 0).empty());
}

TEST_CASE("ranks of one track are one arrival with their number") {
  HandStep step(mesh_of(1, 3));
  const std::uint8_t dp = step.group(mask_of(Axis::kData));
  for (int rank = 0; rank < 3; ++rank) {
    step.rank([&](ProgramBuilder& b) { hand_all_reduce(b, dp, hand_buffer(b)); });
    step.spans(rank, {{0, rank == 2 ? 4 : 1, 4, 6}});
  }
  // Fold ranks 0 and 1, which had the same times; all three have one program.
  Plan& plan = const_cast<Plan&>(step.plan());
  plan.class_axes = 0;
  Trace trace = step.trace();
  TraceStep& folded = trace.steps[0];
  folded.tracks.erase(folded.tracks.begin() + 1);
  folded.tracks[0].ranks = {0, 1};
  folded.tracks[1].ranks = {2};
  folded.track_of_rank = {0, 0, 1};
  for (TraceTrack& track : folded.tracks) {
    track.class_index = 0;
  }
  const TraceIndex index(plan, folded);
  const Arrivals all(index, {0, folded.tracks[0].spans[0].operation}, 1);
  REQUIRE(all.list().size() == 2);
  CHECK(all.list()[0].count == 2);
  CHECK(all.members() == 3);
  CHECK(all.waited() == 6);
  CHECK(all.last_behind() == 3);
}

// ---- A second reading of rule R2 ----------------------------------------------------------------

/// What an operation may have waited for on its own rank, read from the program alone.
std::vector<std::uint32_t> own_predecessors(const Program& program, std::uint32_t at) {
  const Operation& op = program.operations[at];
  const auto on = program.dependencies_of(op);
  std::vector<std::uint32_t> found(on.begin(), on.end());
  bool queue = false;
  bool group = false;
  for (std::uint32_t i = at; i-- > 0 && !(queue && group);) {
    const Operation& other = program.operations[i];
    if (other.kind == OperationKind::kAlloc || other.kind == OperationKind::kFree) {
      continue;
    }
    const bool same_queue = op.peer == kNoPeer ? other.peer == kNoPeer && other.stream == op.stream
                                               : other.peer == op.peer && other.kind == op.kind;
    const bool same_group = op.kind == OperationKind::kCollective && other.kind == op.kind &&
                            other.communicator == op.communicator;
    if ((same_queue && !queue) || (same_group && !group)) {
      found.push_back(i);
    }
    queue = queue || same_queue;
    group = group || same_group;
  }
  return found;
}

bool contains(const std::vector<std::uint32_t>& all, std::uint32_t one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// The same collective or message on another rank, by counting; kNoSpan for none.
std::uint32_t part_of(const TraceIndex& index, const TrackOperation& at, std::int32_t other) {
  const Operation& op = index.operation(at);
  const Program& mine = *index.program(at.track).program;
  const Program& theirs = *index.program(other).program;
  std::size_t number = 0;
  for (std::uint32_t i = 0; i < at.operation; ++i) {
    number +=
        mine.operations[i].kind == op.kind && mine.operations[i].communicator == op.communicator;
  }
  for (std::uint32_t i = 0; i < theirs.operations.size(); ++i) {
    const Operation& it = theirs.operations[i];
    if (op.kind == OperationKind::kCollective) {
      const bool alike = it.kind == op.kind && it.communicator == op.communicator;
      if (alike && number-- == 0) {
        return i;
      }
    } else if (it.kind != op.kind && it.tag == op.tag && it.peer != kNoPeer &&
               index.plan().mesh.with(index.track(other).ranks.front(), Axis::kPipeline, it.peer) ==
                   index.track(at.track).ranks.front()) {
      return i;
    }
  }
  return kNoSpan;
}

/// Whether `before` is something that `at` has to wait for, by the plan alone.
bool depends(const TraceIndex& index, const TrackOperation& at, const TrackOperation& before) {
  if (at.track == before.track) {
    const Program& program = *index.program(at.track).program;
    if (contains(own_predecessors(program, at.operation), before.operation)) {
      return true;
    }
    // Through the host: it waited for `before`, and for nothing else since.
    const Operation& op = program.operations[before.operation];
    const bool waits = op.has(kHostSync) || op.kind == OperationKind::kHost;
    // Or it computes itself: then it issues the next just when it has computed.
    const bool computes =
        op.stream == Stream::kCompute && index.times(before).ended == index.times(at).issued;
    return before.operation < at.operation && (waits || computes);
  }
  return is_message(index.operation(at)) && part_of(index, at, before.track) == before.operation;
}

TEST_CASE("in random traces everything that is said to determine a start is in the plan") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name << ", seed " << test::test_seed());
    const Plan plan = make_plan(it.scenario);
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const TraceIndex index(plan, trace.steps[0]);
    for (std::int32_t track = 0; track < index.track_count(); ++track) {
      const std::vector<std::uint32_t>& operations = index.program(track).operations;
      // Some of each: all would take a second reading of all, over all.
      for (std::size_t i = 0; i < operations.size(); i += 1 + random() % 40) {
        const TrackOperation at{track, operations[i]};
        const SpanTimes times = index.times(at);
        const std::vector<Link> links = waited_for(index, at);
        const TrackOperation before = determining(index, at);
        Nanoseconds latest = index.step().begin;
        for (std::size_t n = 0; n < links.size(); ++n) {
          latest = std::max(latest, links[n].over);
          REQUIRE(links[n].slack == times.started - links[n].over);
          REQUIRE(links[n].slack >= 0);
          REQUIRE(links[n].determines == (n == 0));
          if (links[n].kind != LinkKind::kIssue) {
            REQUIRE(depends(index, at, links[n].operation));
          }
        }
        REQUIRE(latest == times.started);  // rule R2: nothing else holds an operation up
        if (before.operation != kNoSpan) {
          REQUIRE(depends(index, at, before));
          const std::vector<TrackOperation> after = determined(index, before);
          REQUIRE(std::any_of(after.begin(), after.end(), [&](const TrackOperation& other) {
            return other.track == at.track && other.operation == at.operation;
          }));
        }
      }
    }
  }
}

/// Without gaps, in sum the step, and every link a dependency of the plan.
void check_path(const TraceIndex& index) {
  const PathSummary summary(index, critical_path(index));
  const std::vector<PathSegment>& path = summary.path();
  REQUIRE(path.front().begin == index.step().begin);
  REQUIRE(path.back().end == index.step().end);
  REQUIRE(summary.total() == index.step().end - index.step().begin);
  for (std::size_t i = 1; i < path.size(); ++i) {
    REQUIRE(path[i].begin == path[i - 1].end);
    REQUIRE(path[i - 1].cause != PathCause::kUnexplained);
    REQUIRE(path[i].cause != PathCause::kUnexplained);
    const TrackOperation at{path[i].track, path[i].operation};
    const TrackOperation before{path[i - 1].track, path[i - 1].operation};
    if (at.track == before.track && at.operation == before.operation) {
      continue;  // issued, then run
    }
    // Of a meeting the path goes on with what the last to come had waited for.
    const TrackOperation late = index.last_arrival(at);
    const bool same = late.track == before.track && late.operation == before.operation;
    REQUIRE((same || depends(index, at, before) || depends(index, late, before)));
  }
}

TEST_CASE("in random traces every link of the critical path is a dependency of the plan") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name << ", seed " << test::test_seed());
    const Plan plan = make_plan(it.scenario);
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    check_path(TraceIndex(plan, trace.steps[0]));
  }
}

TEST_CASE("in random scenarios every link of the critical path is a dependency of the plan") {
  std::mt19937_64 random(test::test_seed());
  for (int i = 0; i < test::scaled(40); ++i) {
    const Scenario scenario = test::random_scenario(random);
    INFO("scenario " << i << ", seed " << test::test_seed());
    const Plan plan = make_plan(scenario);
    sim::SimulationOptions options;
    options.fold = false;
    const Trace trace = sim::simulate(plan, scenario.cluster, options).trace;
    check_path(TraceIndex(plan, trace.steps[0]));
  }
}

TEST_CASE("the shares of a critical path are those worked out by hand") {
  HandStep step = late_rank();
  const TraceIndex index(step.plan(), step.step());
  const PathSummary summary(index, critical_path(index));
  // 0-5 the late computation, 5-8 the reduction, 8-9 the computation with its result.
  REQUIRE(summary.shares().size() == 2);
  CHECK(summary.shares()[0].name() == "compute");
  CHECK(summary.shares()[0].time == 6);
  CHECK(summary.shares()[0].pieces == 2);
  CHECK(summary.shares()[1].name() == "communication dp");
  CHECK(summary.shares()[1].time == 3);
  CHECK(summary.total() == 9);
  CHECK(summary.tracks() == std::vector<std::int32_t>{1, 0});
  CHECK(path_text(summary) ==
        "critical path: what the step's 9 ns are made of\n"
        "  kind               share  time  pieces\n"
        "  compute           66.7 %  6 ns       2\n"
        "  communication dp  33.3 %  3 ns       1\n");
}

}  // namespace
}  // namespace lockstep::view
