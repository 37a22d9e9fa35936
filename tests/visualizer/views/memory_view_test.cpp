// The memory view driven by mouse and keyboard; bytes are checked against the report and the plan's
// own count.
#include <algorithm>
#include <string>

#include "core/memory_timeline.h"
#include "tests/support/catch.h"
#include "tests/visualizer/support/harness.h"

using namespace lockstep;
using lockstep::test::Harness;

namespace {

void open_memory(Harness& window, const char* preset) {
  window.open(preset);
  REQUIRE(window.app().shell().show_view("memory"));
  window.frames(2);
}

std::int64_t number(Harness& window, const char* tag) {
  return std::stoll(window.value(tag));
}

}  // namespace

TEST_CASE("the memory view's peak is the report's peak, for every kind of rank") {
  Harness window;
  open_memory(window, "pipeline");
  const MemoryReport& report = window.session().document()->memory;
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(window.value("rank") == std::to_string(rank));
    const auto it = std::find_if(report.ranks.begin(), report.ranks.end(), [&](const auto& row) {
      const std::vector<int> ranks = report.ranks_of(row);
      return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    });
    REQUIRE(it != report.ranks.end());
    CHECK(number(window, "memory.peak") == it->peak_bytes());
    window.press(ui::Key::kPageDown);
  }
  CHECK(window.value("rank") == "3");
}

TEST_CASE("what the memory view holds at the cursor is the plan's count there") {
  Harness window;
  open_memory(window, "ddp");
  const app::Document& document = *window.session().document();
  const TraceStep& step = document.shown_step();
  const std::vector<MemorySample> samples = memory_timeline(document.plan, step, 0);
  for (const int percent : {0, 20, 55, 90, 100}) {
    const Nanoseconds at = step.begin + (step.end - step.begin) * percent / 100;
    window.session().cursor = at;
    window.frames(2);
    std::int64_t held = 0;
    for (const MemorySample& sample : samples) {
      held = sample.time <= at ? total(sample.bytes) : held;
    }
    const std::int64_t outside = document.memory.worst().non_tensor_bytes();
    CHECK(number(window, "memory.held") == held + outside);
  }
}

TEST_CASE("the memory cursor follows mouse, arrows and M") {
  Harness window;
  open_memory(window, "ddp");
  const TraceStep& step = window.session().document()->shown_step();
  const ui::Tag plot = window.tag("memory.plot");
  window.drag(plot.centre(), ImVec2(plot.min.x + 1, plot.centre().y));
  REQUIRE(window.session().cursor);
  CHECK(*window.session().cursor - step.begin < (step.end - step.begin) / 50);
  window.press(ui::Key::kHome);
  CHECK(*window.session().cursor == step.begin);
  window.press(ui::Key::kRight);
  CHECK(*window.session().cursor == step.begin + (step.end - step.begin) / 100);
  window.press(ui::Key::kM);
  window.frames(2);
  CHECK(number(window, "memory.held") == number(window, "memory.peak"));
  window.press(ui::Key::kEnd);
  CHECK(*window.session().cursor == step.end);
}

TEST_CASE("the largest allocation stands first in the memory view's table") {
  Harness window;
  open_memory(window, "fsdp");
  const std::int64_t first = number(window, "memory.row.0");
  CHECK(first >= number(window, "memory.row.1"));
  CHECK(number(window, "memory.row.1") >= number(window, "memory.row.2"));
  CHECK(first > 0);
}
