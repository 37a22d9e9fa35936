// The timeline driven by mouse and keyboard; times are checked against the trace.
#include <string>

#include "core/time_split.h"
#include "core/trace_index.h"
#include "tests/support/catch.h"
#include "tests/visualizer/support/harness.h"

using namespace lockstep;
using lockstep::test::Harness;

namespace {

const TraceStep& step_of(Harness& window) {
  return window.session().document()->shown_step();
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

TEST_CASE("brackets walk from operation to operation of a row and back") {
  Harness window;
  window.open("laptop");
  window.type("]");
  REQUIRE(window.session().selection);
  const app::Selection first = *window.session().selection;
  window.type("]");
  const app::Selection second = *window.session().selection;
  CHECK_FALSE(first == second);
  window.type("[");
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
