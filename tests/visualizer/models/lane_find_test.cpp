// Finding operations by name and marking them, against a walk over all boxes.
#include "visualizer/models/lane_find.h"

#include <algorithm>
#include <set>

#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"
#include "visualizer/models/timeline_lanes.h"

namespace lockstep::view {
namespace {

TEST_CASE("a search finds what reading every label finds, in order of time") {
  std::mt19937_64 random(test::test_seed());
  for (const test::NamedScenario& it : test::one_of_each()) {
    INFO(it.name);
    const Plan plan = make_plan(it.scenario);
    const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
    const TraceStep& step = trace.steps[0];
    const TimelineLanes lanes(plan, step, usual_ranks(step, 3));
    LaneFind find(lanes);
    while (find.prepare()) {
    }
    for (const char* text : {"matmul", "MATMUL", "all_", "h.1", "send", "#0", "no such thing"}) {
      find.search(text);
      const std::string small = std::string(text) == "MATMUL" ? "matmul" : text;
      std::set<std::pair<std::size_t, std::uint32_t>> items;
      for (std::size_t row = 0; row < lanes.rows().size(); ++row) {
        for (const LaneBox& box : lanes.boxes(row, lanes.whole(), 0)) {
          const bool wanted = lanes.label(row, box).find(small) != std::string::npos;
          REQUIRE(find.marks().holds(row, box) == wanted);
          if (wanted) {
            items.emplace(row, box.item);
          }
        }
      }
      REQUIRE(find.found().size() == items.size());
      REQUIRE(std::is_sorted(find.found().begin(),
                             find.found().end(),
                             [](const auto& a, const auto& b) { return a.begin < b.begin; }));
    }
  }
}

TEST_CASE("folded boxes are marked when one of their items is") {
  std::mt19937_64 random(test::test_seed());
  const test::NamedScenario it = test::one_of_each().front();
  const Plan plan = make_plan(it.scenario);
  const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
  const TraceStep& step = trace.steps[0];
  const TimelineLanes lanes(plan, step, {0});
  LaneFind find(lanes);
  while (find.prepare()) {
  }
  find.search("matmul");
  const Nanoseconds narrowest = lanes.whole().length() / 40;
  for (std::size_t row = 0; row < lanes.rows().size(); ++row) {
    for (const LaneBox& box : lanes.boxes(row, lanes.whole(), narrowest)) {
      bool any = false;
      for (const LaneBox& inner : lanes.boxes(row, {box.begin, box.end}, 0)) {
        any = any || find.marks().holds(row, inner);
      }
      REQUIRE(find.marks().holds(row, box) == any);
    }
  }
}

TEST_CASE("the next one after a time is the first when there is none after it") {
  std::mt19937_64 random(test::test_seed());
  const test::NamedScenario it = test::one_of_each().front();
  const Plan plan = make_plan(it.scenario);
  const Trace trace = test::random_trace(plan, test::steady_section(plan), random);
  const TimelineLanes lanes(plan, trace.steps[0], {0});
  LaneFind find(lanes);
  while (find.prepare()) {
  }
  find.search("matmul");
  REQUIRE(find.found().size() > 2);
  CHECK(find.first_from(0) == 0);
  CHECK(find.first_from(lanes.whole().to + 1) == 0);
  const FoundItem& second = find.found()[1];
  CHECK(find.found()[find.first_from(second.begin)].begin == second.begin);
  CHECK(find.number_of(second.row, second.item) == std::size_t{1});
  CHECK_FALSE(find.number_of(second.row, kNoItem));
  find.search("Optimizer");
  CHECK_FALSE(find.found().empty());
  for (const FoundItem& found : find.found()) {
    CHECK(lanes.find(found.row, found.item).paint == Paint::kOptimizer);
  }
  find.search("");
  CHECK(find.found().empty());
}

}  // namespace
}  // namespace lockstep::view
