#include "visualizer/models/timeline.h"

#include <algorithm>
#include <regex>
#include <sstream>

#include "core/error.h"
#include "core/planner/planner.h"
#include "core/report_text.h"
#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"
#include "visualizer/models/timeline_text.h"

namespace lockstep::view {
namespace {

using test::hand_all_reduce;
using test::hand_buffer;
using test::hand_compute;
using test::HandStep;
using test::mesh_of;

/// Two stages, forward and backward of one micro-batch; 100 ns.
HandStep two_stages() {
  HandStep step(mesh_of(2, 1));
  const std::uint8_t pp = step.group(mask_of(Axis::kPipeline));
  step.rank([&](ProgramBuilder& b) {
    const BufferId x = hand_buffer(b);
    hand_compute(b, x, x);
    b.send(pp, 1, 0, b.whole(x));
    const BufferId dx = hand_buffer(b);
    b.recv(pp, 1, 1, b.whole(dx));
    b.at(Phase::kBackward, 0, 0);
    hand_compute(b, dx, dx);
    b.free(dx);
  });
  step.rank([&](ProgramBuilder& b) {
    const BufferId y = hand_buffer(b);
    b.recv(pp, 0, 0, b.whole(y));
    b.at(Phase::kForward, 0, 3);
    hand_compute(b, y, y);
    b.at(Phase::kRecompute, 0, 3);
    hand_compute(b, y, y);
    b.send(pp, 0, 1, b.whole(y));
  });
  step.spans(0, {{0, 0, 0, 20}, {0, 20, 20, 30}, {0, 30, 60, 70}, {0, 70, 70, 100}});
  step.spans(1, {{0, 0, 20, 30}, {0, 30, 30, 50}, {0, 50, 50, 60}, {0, 60, 60, 70}});
  return step;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

TEST_CASE("a pipeline of two stages is drawn cell by cell as worked out by hand") {
  HandStep step = two_stages();
  // 16 columns of label ("rank 0 " and "pipeline "), 50 cells of 2 ns.
  const std::string text = timeline_text(step.plan(), step.step(), {.width = 66, .memory = false});
  const std::vector<std::string> lines = lines_of(text);
  REQUIRE(lines.size() == 6);
  CHECK(lines[1] == "rank 0 compute  F0FFFFFFFF.........................B0BBBBBBBBBBBBB");
  CHECK(lines[2] == "       pipeline ..........=====~~~~~~~~~~~~~~~=====...............");
  CHECK(lines[3] == "rank 1 compute  ...............F3FFFFFFFFR3RRR....................");
  CHECK(lines[4] == "       pipeline ~~~~~~~~~~=====...............=====...............");
  CHECK(lines[0] == "                |0 ns                    |50");
  CHECK(lines[5].find("F forward  B backward  R recompute  = transfer  ~ waiting") == 0);
}

TEST_CASE("cells that are busy for less than half are small letters") {
  HandStep step(mesh_of(1, 1));
  step.rank([&](ProgramBuilder& b) {
    const BufferId x = hand_buffer(b);
    hand_compute(b, x, x);
    hand_compute(b, x, x);
  });
  step.spans(0, {{0, 0, 0, 3}, {0, 10, 10, 19}});
  step.end(40);
  const Timeline timeline(step.plan(), step.step(), {0});
  const std::vector<TimelineCell> cells = timeline.cells(timeline.rows()[0], {0, 40}, 4);
  CHECK(cells[0].busy == Approx(0.3));
  CHECK(cells[1].busy == Approx(0.9));
  CHECK(cells[2].busy == 0);
  // 15 columns of label, 25 cells of 1.6 ns (cut down to whole nanoseconds).
  const std::vector<std::string> lines =
      lines_of(timeline_text(step.plan(), step.step(), {.width = 40, .memory = false}));
  CHECK(lines[1] == "rank 0 compute FF....F0FFFF.............");
}

TEST_CASE("colour only repeats what the letters say") {
  HandStep step = two_stages();
  const std::string plain = timeline_text(step.plan(), step.step(), {.width = 80});
  const std::string coloured =
      timeline_text(step.plan(), step.step(), {.width = 80, .colour = true});
  CHECK(coloured != plain);
  CHECK(std::regex_replace(coloured, std::regex("\x1b\\[[0-9]*m"), "") == plain);
}

TEST_CASE("without UTF-8 every character is printable ASCII") {
  HandStep step = two_stages();
  for (const char c : timeline_text(step.plan(), step.step(), {.width = 80})) {
    CHECK((c == '\n' || (c >= ' ' && c <= '~')));
  }
}

TEST_CASE("memory is drawn with its peak and the time of the peak") {
  HandStep step = two_stages();
  const std::string text = timeline_text(step.plan(), step.step(), {.width = 66});
  const std::vector<std::string> lines = lines_of(text);
  // Stage 0 holds one buffer of 64 fp32 values, from its recv's start on two.
  REQUIRE(lines[3].rfind("       memory   ", 0) == 0);
  CHECK(lines[3].find("peak 512 B at 60 ns") != std::string::npos);
  CHECK(lines[3].substr(16, 30) == std::string(30, '-'));
  CHECK(lines[3].substr(46, 19) == std::string(19, '#'));
}

TEST_CASE("spans narrower than asked for fold into boxes that keep their time") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name);
    const Plan plan = make_plan(it.scenario);
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const TraceStep& step = trace.steps[0];
    const Timeline timeline(plan, step, usual_ranks(step, 4));
    for (const TimelineRow& row : timeline.rows()) {
      const std::vector<TimelineBox> fine = timeline.boxes(row, timeline.whole(), 0);
      const Nanoseconds narrowest = step.end / 50;
      const std::vector<TimelineBox> coarse = timeline.boxes(row, timeline.whole(), narrowest);
      REQUIRE(coarse.size() <= 102);  // folded boxes and wide ones take turns at worst
      Nanoseconds busy = 0;
      std::uint32_t spans = 0;
      Nanoseconds cursor = step.begin;
      for (const TimelineBox& box : coarse) {
        REQUIRE(box.begin >= cursor);
        REQUIRE(box.end > box.begin);
        REQUIRE((box.operation == kNoSpan) == (box.spans > 1));
        cursor = box.end;
        busy += box.busy;
        spans += box.spans;
      }
      REQUIRE(spans == fine.size());
      for (const TimelineBox& box : fine) {
        busy -= box.busy;
      }
      REQUIRE(busy == 0);
    }
  }
}

TEST_CASE("every strategy can be drawn, every line fits the width") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name);
    const Plan plan = make_plan(it.scenario);
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    for (const int width : {0, 60, 133}) {
      const std::string text = timeline_text(
          plan, trace.steps[0], {.width = width, .utf8 = true, .memory = width == 60});
      std::vector<std::string> lines = lines_of(text);
      lines.pop_back();  // the legend is a sentence
      for (const std::string& line : lines) {
        const bool memory = line.find("peak") != std::string::npos;
        REQUIRE(text_width(line) <=
                static_cast<std::size_t>(std::max(40, width)) + (memory ? 40 : 0));
        REQUIRE(line.find_last_not_of(' ') + 1 == line.size());
      }
    }
  }
}

TEST_CASE("a window shows its part of the step with the same axis") {
  HandStep step = two_stages();
  const std::vector<std::string> lines = lines_of(timeline_text(
      step.plan(), step.step(), {.width = 66, .window = TimeWindow{60, 70}, .memory = false}));
  CHECK(lines[0].find("|60 ns") == 16);
  CHECK(lines[2] == "       pipeline " + std::string(50, '='));
}

TEST_CASE("ranks that do not exist are refused; the usual ones cover all tracks") {
  HandStep step = two_stages();
  CHECK_THROWS_AS(Timeline(step.plan(), step.step(), {2}), UsageError);
  CHECK_THROWS_AS(Timeline(step.plan(), step.step(), {-1}), UsageError);
  CHECK(usual_ranks(step.step(), 16) == std::vector<int>{0, 1});
  CHECK(usual_ranks(step.step(), 1) == std::vector<int>{0});
}

TEST_CASE("times are three digits in the unit that fits") {
  CHECK(time_text(0) == "0 ns");
  CHECK(time_text(999) == "999 ns");
  CHECK(time_text(1'500) == "1.50 us");
  CHECK(time_text(12'340'000) == "12.3 ms");
  CHECK(time_text(250'000'000'000) == "250 s");
  CHECK(time_text(1'500, true) == "1.50 \xC2\xB5s");
}

}  // namespace
}  // namespace lockstep::view
