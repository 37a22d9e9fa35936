// The shard view driven by mouse and keyboard; states are checked against the trace.
#include <algorithm>
#include <string>

#include "core/trace_index.h"
#include "tests/support/catch.h"
#include "tests/visualizer/support/harness.h"
#include "visualizer/models/shards.h"

using namespace lockstep;
using lockstep::test::Harness;

namespace {

void open_shards(Harness& window, const char* preset) {
  window.open(preset);
  REQUIRE(window.app().shell().show_view("shards"));
  window.frames(2);
}

void go(Harness& window, Nanoseconds at) {
  window.session().cursor = at;
  window.frames(2);
}

}  // namespace

TEST_CASE("a unit is shown gathering while its all-gather runs in the trace") {
  Harness window;
  open_shards(window, "fsdp");
  const app::Document& document = *window.session().document();
  const TraceIndex index(document.plan, document.shown_step());
  const view::Shards shards(index, 0);
  REQUIRE(shards.units().size() > 10);
  for (const std::size_t unit : {std::size_t{1}, std::size_t{9}}) {
    const view::ShardUnit& it = shards.units()[unit];
    const auto gather = std::find_if(
        it.parameters.begin(), it.parameters.end(), [](const view::ShardInterval& part) {
          return part.stage == view::ShardStage::kGathering;
        });
    REQUIRE(gather != it.parameters.end());
    const SpanTimes times = index.times({0, gather->operation});
    go(window, (times.started + times.ended) / 2);
    CHECK_THAT(window.value("unit." + it.name), Catch::Matchers::StartsWith("gathering"));
    go(window, document.shown_step().end);
    CHECK_THAT(window.value("unit." + it.name), Catch::Matchers::StartsWith("sharded"));
  }
}

TEST_CASE("a click on a unit selects one of its gathers, brackets go to its neighbours") {
  Harness window;
  open_shards(window, "fsdp");
  go(window, window.session().document()->shown_step().begin);
  window.type("]");
  window.frames(2);
  CHECK(window.value("shards.unit") == "embedding+head");
  window.type("]");
  window.frames(2);
  CHECK(window.value("shards.unit") == "layers.0");
  window.click("unit.layers.2");
  window.frames(2);
  CHECK(window.value("shards.unit") == "layers.2");
  REQUIRE(window.session().selection);
  const app::Document& document = *window.session().document();
  const TraceIndex index(document.plan, document.shown_step());
  const Operation& op = index.operation({0, window.session().selection->operation});
  CHECK(op.kind == OperationKind::kCollective);
  window.press(ui::Key::kEscape);
  CHECK_FALSE(window.session().selection);
}

TEST_CASE("the memory below the shards moves the time") {
  Harness window;
  open_shards(window, "fsdp");
  const TraceStep& step = window.session().document()->shown_step();
  const ui::Tag plot = window.tag("memory.plot");
  window.click_at(plot.centre());
  REQUIRE(window.session().cursor);
  const Nanoseconds middle = (step.begin + step.end) / 2;
  CHECK(std::abs(*window.session().cursor - middle) < (step.end - step.begin) / 100);
  CHECK(window.value("play.time") == std::to_string(*window.session().cursor));
}

TEST_CASE("where every rank holds its parameters whole the shard view says so") {
  Harness window;
  open_shards(window, "ddp");
  CHECK_THAT(window.value("shards.empty"), Catch::Matchers::ContainsSubstring("whole"));
}

TEST_CASE("the shard view draws at most 10,000 quads") {
  Harness window(1920, 1080);
  open_shards(window, "fsdp");
  CHECK(ImGui::GetDrawData()->TotalIdxCount / 6 <= 10'000);
}

TEST_CASE("the shard view still has its grid in a window of 640 by 400") {
  Harness window(640, 400);
  open_shards(window, "fsdp");
  CHECK(window.shows("unit.layers.0"));
  CHECK(window.shows("memory.plot"));
}
