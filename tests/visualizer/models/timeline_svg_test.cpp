#include "visualizer/models/timeline_svg.h"

#include <cstdlib>
#include <set>

#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::view {
namespace {

using Catch::Matchers::ContainsSubstring;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

/// By Python's expat; true where there is no python3.
bool is_well_formed(const std::string& text) {
  if (std::system("command -v python3 > /dev/null") != 0) {
    WARN("no python3: the picture was not parsed");
    return true;
  }
  const test::TemporaryFolder folder;
  const std::string path = folder.write("picture.svg", text);
  const std::string command =
      "python3 -c \"import sys, xml.etree.ElementTree as t; t.parse(sys.argv[1])\" ";
  return std::system((command + path).c_str()) == 0;
}

TEST_CASE("svg: text is escaped, hatches are defined where they are used") {
  Svg svg(100, 50);
  svg.box({.x = 1,
           .y = 2,
           .width = 90,
           .height = 10,
           .fill = "#123456",
           .hatch = Hatch::kRising,
           .label = "a<b>&\"c\"",
           .title = "t & \x01"});
  svg.box({.x = 1, .y = 20, .width = 5, .height = 10, .label = "too long"});
  svg.line(0, 0, 1.5, 2.25);
  svg.write({3, 4, "x < y", "end"});
  const std::string text = svg.text();
  CHECK(is_well_formed(text));
  CHECK(count_of(text, "class=\"box\"") == 2);
  CHECK_THAT(text, ContainsSubstring("a&lt;b&gt;&amp;&quot;c&quot;"));
  CHECK_THAT(text, ContainsSubstring("x2=\"1.5\" y2=\"2.25\""));
  CHECK(count_of(text, "<pattern id=\"hatch1\"") == 1);
  CHECK(count_of(text, "<pattern ") == 1);
  CHECK(text.find("too long") == std::string::npos);
}

TEST_CASE("svg: a timeline has exactly its model's boxes, and one for every word of the legend") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name);
    const Plan plan = make_plan(it.scenario);
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const Timeline timeline(plan, trace.steps[0], usual_ranks(trace.steps[0], 4));
    const std::string text = timeline_svg(timeline, {.narrowest = 0});
    std::size_t expected = 0;
    std::set<Paint> paints;
    for (const TimelineRow& row : timeline.rows()) {
      for (const TimelineBox& box : timeline.boxes(row, timeline.whole(), 0)) {
        ++expected;
        paints.insert(box.paint);
      }
    }
    CHECK(count_of(text, "class=\"box\"") == expected + paints.size());
    CHECK_THAT(text, ContainsSubstring("rank 0 compute"));
    for (const Paint paint : paints) {
      CHECK_THAT(text, ContainsSubstring(">" + std::string(name_of(paint)) + "</text>"));
    }
  }
}

TEST_CASE("svg: a timeline is well-formed, and folding makes it small") {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.pipeline.degree = 2;
  scenario.training.accumulate = 4;
  const Plan plan = make_plan(resolved(scenario));
  std::mt19937_64 random(test::test_seed());
  const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
  const Timeline timeline(plan, trace.steps[0], {0, 1});
  const std::string whole = timeline_svg(timeline, {.narrowest = 0});
  CHECK(is_well_formed(whole));
  const std::string folded = timeline_svg(timeline, {.narrowest = 50});
  CHECK(is_well_formed(folded));
  CHECK(count_of(folded, "class=\"box\"") < count_of(whole, "class=\"box\""));
  const TimeWindow window{timeline.whole().from, timeline.whole().length() / 4};
  CHECK(is_well_formed(timeline_svg(timeline, {.window = window})));
}

}  // namespace
}  // namespace lockstep::view
