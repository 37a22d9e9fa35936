// The timeline driven by mouse and keyboard; times are checked against the trace.
#include <string>
#include <vector>

#include "core/io/trace_io.h"
#include "core/time_split.h"
#include "core/trace_index.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/visualizer/support/harness.h"
#include "visualizer/models/dependencies.h"
#include "visualizer/models/path_summary.h"
#include "visualizer/models/timeline.h"

using namespace lockstep;
using lockstep::test::Harness;
using lockstep::test::TemporaryFolder;

namespace {

const TraceStep& step_of(Harness& window) {
  return window.session().document()->shown_step();
}

TrackOperation selected(Harness& window) {
  const app::Selection selection = *window.session().selection;
  return {step_of(window).track_of_rank[static_cast<std::size_t>(selection.rank)],
          selection.operation};
}

void select(Harness& window, const TrackOperation& at) {
  const TraceTrack& track = step_of(window).tracks[static_cast<std::size_t>(at.track)];
  window.session().selection = app::Selection{track.ranks.front(), at.operation};
  window.frames(2);
}

/// Of this kind, whose last rank is another one.
TrackOperation late_peer(const TraceIndex& index, OperationKind kind) {
  for (std::int32_t track = 0; track < index.track_count(); ++track) {
    for (const std::uint32_t operation : index.program(track).operations) {
      const TrackOperation at{track, operation};
      if (index.operation(at).kind == kind && index.last_arrival(at).track != track) {
        return at;
      }
    }
  }
  return {};
}

}  // namespace

TEST_CASE("a click on the timeline selects the operation that runs there, Esc lets go") {
  Harness window;
  window.open("pipeline");
  const ui::Tag body = window.tag("lanes.body");
  window.wheel(ImVec2(body.max.x - 300, body.min.y + 10), 40);  // close enough for single boxes
  window.click_at(ImVec2(body.max.x - 300, body.min.y + 10));
  REQUIRE(window.session().selection);
  REQUIRE(window.session().cursor);
  const app::Document& document = *window.session().document();
  const TraceIndex index(document.plan, step_of(window));
  const app::Selection selection = *window.session().selection;
  CHECK(selection.rank == 0);
  const SpanTimes times = index.times({step_of(window).track_of_rank[0], selection.operation});
  CHECK(times.started <= *window.session().cursor);
  CHECK(*window.session().cursor <= times.ended);
  window.frames(1);
  CHECK(window.shows("details.started"));
  window.press(ui::Key::kEscape);
  CHECK_FALSE(window.session().selection);
}

TEST_CASE("comma and point walk from operation to operation of a row and back") {
  Harness window;
  window.open("laptop");
  window.type(".");
  REQUIRE(window.session().selection);
  const app::Selection first = *window.session().selection;
  window.type(".");
  const app::Selection second = *window.session().selection;
  CHECK_FALSE(first == second);
  window.type(",");
  CHECK(*window.session().selection == first);
}

TEST_CASE(
    "dragging selects a span of time whose split is the report's where it is the whole step") {
  Harness window;
  window.open("pipeline");
  const ui::Tag body = window.tag("lanes.body");
  // From far left of the rows to far right: the whole step.
  window.drag(ImVec2(body.max.x - 2, body.min.y + 40), ImVec2(body.min.x + 5, body.min.y + 60));
  REQUIRE(window.session().area);
  CHECK(window.session().area->from == step_of(window).begin);
  window.session().area = view::TimeWindow{step_of(window).begin, step_of(window).end};
  window.frames(2);
  const Report& report = window.session().document()->report;
  for (const RankReport& rank : report.ranks) {
    const std::string prefix = "split." + std::to_string(rank.rank) + ".";
    CHECK(window.value(prefix + std::string(name_of(TimeKind::kCompute))) ==
          std::to_string(rank.time.compute));
    CHECK(window.value(prefix + std::string(name_of(TimeKind::kBubble))) ==
          std::to_string(rank.time.bubble));
  }
}

TEST_CASE("the timeline draws at most 10,000 quads, near and far") {
  Harness window(1920, 1080);
  window.open("mix");
  const ui::Tag body = window.tag("lanes.body");
  for (int i = 0; i < 8; ++i) {
    CHECK(ImGui::GetDrawData()->TotalIdxCount / 6 <= 10'000);
    window.wheel(body.centre(), 4);
  }
}

TEST_CASE("letters zoom and move the timeline only while no text is typed") {
  Harness window;
  window.open("ddp");
  const auto before = window.picture().pixels;
  window.press(ui::Key::kW);
  const auto near = window.picture().pixels;
  CHECK(near != before);
  window.press(ui::Key::kF);
  CHECK(window.picture().pixels == before);
  window.press(ui::Key::kP, ui::kControl | ui::kShift);
  window.type("w");
  window.press(ui::Key::kW);
  window.press(ui::Key::kEscape);
  window.frames(3);
  CHECK(window.picture().pixels == before);
}

TEST_CASE("brackets follow what determined the start of an operation through the ranks") {
  Harness window;
  window.open("pipeline");
  const TraceIndex index(window.session().document()->plan, step_of(window));
  select(window, late_peer(index, OperationKind::kRecv));
  std::size_t ranks = 0;
  for (int i = 0; i < 40; ++i) {
    const TrackOperation at = selected(window);
    const TrackOperation before = view::determining(index, at);
    window.type("[");
    if (before.operation == kNoSpan) {
      CHECK(selected(window).operation == at.operation);
      break;
    }
    REQUIRE(selected(window).track == before.track);
    REQUIRE(selected(window).operation == before.operation);
    ranks += before.track != at.track ? 1 : 0;
    // Forward goes to the first of those that it determined: perhaps to another one.
    const std::vector<TrackOperation> after = view::determined(index, before);
    REQUIRE_FALSE(after.empty());
    window.type("]");
    REQUIRE(selected(window).operation == after.front().operation);
    select(window, before);
  }
  CHECK(ranks > 0);
}

TEST_CASE("the details list what an operation waited for, and a row of them goes there") {
  Harness window(1600, 1000);
  window.open("pipeline");
  const TraceIndex index(window.session().document()->plan, step_of(window));
  const TrackOperation at{0, index.last_operation(0)};
  select(window, at);
  const std::vector<view::Link> links = view::waited_for(index, at);
  REQUIRE_FALSE(links.empty());
  CHECK(window.value("causes") == std::to_string(links.size()));
  for (std::size_t i = 0; i < links.size(); ++i) {
    CHECK(window.value("cause." + std::to_string(i) + ".slack") == std::to_string(links[i].slack));
  }
  window.click("cause.0");
  CHECK(selected(window).operation == links[0].operation.operation);
}

TEST_CASE("a selected collective shows when every rank came to it and who was last") {
  Harness window(1600, 1000);
  window.open("pipeline");
  const TraceIndex index(window.session().document()->plan, step_of(window));
  const TrackOperation at = late_peer(index, OperationKind::kCollective);
  REQUIRE(at.operation != kNoSpan);
  select(window, at);
  const TrackOperation late = index.last_arrival(at);
  const std::int32_t rank = index.track(late.track).ranks.front();
  CHECK(window.value("arrival." + std::to_string(rank)) ==
        std::to_string(index.times(late).arrived));
  CHECK(window.value("arrivals").find("rank " + std::to_string(rank)) == 0);
}

TEST_CASE("the critical path is switched on by K and its shares add up to the step") {
  Harness window(1600, 1000);
  window.open("pipeline");
  const auto before = window.picture().pixels;
  CHECK(window.value("timeline.path").empty());
  window.press(ui::Key::kK);
  CHECK(window.value("timeline.path") == "on");
  CHECK(window.picture().pixels != before);
  const Report& report = window.session().document()->report;
  CHECK(window.value("path.total") == std::to_string(report.step_time));
  const TraceIndex index(window.session().document()->plan, step_of(window));
  Nanoseconds sum = 0;
  const view::PathSummary summary(index, report.path);
  for (const view::PathShare& it : summary.shares()) {
    CHECK(window.value("path." + it.name()) == std::to_string(it.time));
    sum += it.time;
  }
  CHECK(sum == report.step_time);
  window.click("timeline.path");
  CHECK(window.value("timeline.path").empty());
}

TEST_CASE("find goes from one operation of a name to the next, and Esc closes it") {
  Harness window;
  window.open("ddp");
  window.type("/");
  REQUIRE(window.shows("find.text"));
  window.type("ALL_REDUCE");
  CHECK(window.value("find.text") == "ALL_REDUCE");
  const TraceIndex index(window.session().document()->plan, step_of(window));
  std::vector<TrackOperation> wanted;
  for (const std::uint32_t operation : index.program(0).operations) {
    const Operation& op = index.operation({0, operation});
    if (op.kind == OperationKind::kCollective && op.collective == Collective::kAllReduce) {
      wanted.push_back({0, operation});
    }
  }
  const std::string all = std::to_string(wanted.size());
  CHECK(window.value("find.count") == all + " found");
  window.press(ui::Key::kEnter);
  CHECK(window.value("find.count") == "1 of " + all);
  CHECK(selected(window).operation == wanted[0].operation);
  window.type("n");  // Enter has left the box
  CHECK(window.value("find.count") == "2 of " + all);
  window.type("N");
  window.type("N");
  CHECK(window.value("find.count") == all + " of " + all);
  window.press(ui::Key::kEnter);
  CHECK(window.value("find.count") == "1 of " + all);
  window.press(ui::Key::kEnter, ui::kShift);
  CHECK(window.value("find.count") == all + " of " + all);
  window.click("find.next");
  CHECK(window.value("find.count") == "1 of " + all);
  const bool had_selection = window.session().selection.has_value();
  window.press(ui::Key::kEscape);
  CHECK_FALSE(window.shows("find.text"));
  CHECK(had_selection);
  CHECK(window.session().selection);  // it only closed the search
  window.type("/");
  window.press(ui::Key::kEscape);  // while it is typed in
  window.frames(1);
  CHECK_FALSE(window.shows("find.text"));
}

TEST_CASE("what is found while the path is on dims more, and nothing costs too many quads") {
  Harness window(1920, 1080);
  window.open("mix");
  window.press(ui::Key::kK);
  window.type("/");
  window.type("matmul");
  window.press(ui::Key::kEnter);
  const ui::Tag body = window.tag("lanes.body");
  for (int i = 0; i < 8; ++i) {
    CHECK(ImGui::GetDrawData()->TotalIdxCount / 6 <= 10'000);
    window.wheel(body.centre(), 4);
  }
}

TEST_CASE("a trace of several steps shows the one that is chosen in all views") {
  Harness window;
  window.open("laptop");
  const app::Document& one = *window.session().document();
  CHECK_FALSE(window.shows("timeline.step"));
  app::Document two = one;
  TraceStep later = two.trace.steps[0];
  later.end += 1000;
  two.trace.steps.push_back(later);
  const TemporaryFolder folder;
  const std::string path = folder.file("steps.lstrace");
  save_trace(path, two.scenario, two.plan, two.trace);
  window.open(path);
  CHECK(window.value("timeline.step") == "1");
  const Nanoseconds last = window.session().document()->report.step_time;
  window.type("{");
  window.settle();
  CHECK(window.value("timeline.step") == "0");
  CHECK(window.session().document()->report.step_time == last - 1000);
  window.type("{");  // there is none before it
  window.settle();
  CHECK(window.value("timeline.step") == "0");
  window.click("timeline.step.next");
  window.settle();
  CHECK(window.session().document()->report.step_time == last);
}
