// What a graphics card is asked to draw does not grow with the trace. Times are in view_bench.
#include "tests/visualizer/support/many_spans.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/visualizer/support/harness.h"

using namespace lockstep;
using lockstep::test::Harness;

namespace {

constexpr int kMostQuads = 10'000;

/// From the whole to some nanoseconds over one place, and along the trace on the way.
int most_quads_on_the_way(Harness& window) {
  const ui::Tag body = window.tag("lanes.body");
  int most = 0;
  window.press(ui::Key::kF);
  for (int i = 0; i < 40; ++i) {
    window.wheel(ImVec2(body.min.x + (body.max.x - body.min.x) * 0.7F, body.centre().y), 2);
    most = std::max(most, window.quads());
    window.press(i % 2 == 0 ? ui::Key::kD : ui::Key::kA);
    most = std::max(most, window.quads());
  }
  return most;
}

}  // namespace

TEST_CASE("a frame of a native trace of 200,000 spans has at most 10,000 quads at every zoom") {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("many.lstrace");
  REQUIRE(test::write_native_trace(path, 200'000) >= 200'000);
  Harness window;
  for (const auto& [width, height] : {std::pair(1280, 800), std::pair(2560, 1440)}) {
    INFO(width << " x " << height);
    window.resize(width, height);
    window.open(path);
    REQUIRE(window.session().error().empty());
    const int most = most_quads_on_the_way(window);
    CHECK(most > 500);  // something was drawn
    CHECK(most <= kMostQuads);
  }
}

TEST_CASE("a frame of a profiler's trace of 100,000 events has at most 10,000 quads") {
  const test::TemporaryFolder folder;
  test::write_profiler_traces(folder.path(), 100'000);
  Harness window;
  window.open(folder.path().string());
  REQUIRE(window.session().is_imported());
  CHECK(window.value("imported.world") == "8");
  const int most = most_quads_on_the_way(window);
  CHECK(most > 500);
  CHECK(most <= kMostQuads);
}
