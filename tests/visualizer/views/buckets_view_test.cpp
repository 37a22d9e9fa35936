// The bucket view driven by mouse and keyboard; states are checked against the trace.
#include "visualizer/views/buckets_view.h"

#include <string>

#include "core/trace_index.h"
#include "tests/support/catch.h"
#include "tests/visualizer/support/harness.h"
#include "visualizer/models/buckets.h"

using namespace lockstep;
using lockstep::test::Harness;

namespace {

void open_buckets(Harness& window, const char* preset) {
  window.open(preset);
  REQUIRE(window.app().shell().show_view("buckets"));
  window.frames(2);
}

void go(Harness& window, Nanoseconds at) {
  window.session().cursor = at;
  window.frames(2);
}

}  // namespace

TEST_CASE("bucket letters go on after Z with AA") {
  CHECK(views::bucket_letters(0) == "A");
  CHECK(views::bucket_letters(25) == "Z");
  CHECK(views::bucket_letters(26) == "AA");
  CHECK(views::bucket_letters(27) == "AB");
  CHECK(views::bucket_letters(26 + 26 * 26) == "AAA");
}

TEST_CASE("a bucket is shown in flight from the start to the end of its collective") {
  Harness window;
  open_buckets(window, "ddp");
  const app::Document& document = *window.session().document();
  const TraceIndex index(document.plan, document.shown_step());
  const view::Buckets buckets(index, 0);
  REQUIRE(buckets.launches().size() > 2);
  for (std::size_t i = 0; i < 3; ++i) {
    const view::BucketLaunch& it = buckets.launches()[i];
    const SpanTimes times = index.times({0, it.operation});
    const std::string tag = "bucket." + std::string(1, static_cast<char>('A' + it.bucket));
    go(window, times.started);
    CHECK(window.value(tag) == view::name_of(view::BucketPhase::kInFlight));
    go(window, times.ended - 1);
    CHECK(window.value(tag) == view::name_of(view::BucketPhase::kInFlight));
    go(window, times.ended);
    CHECK(window.value(tag) == view::name_of(view::BucketPhase::kDone));
    go(window, document.shown_step().begin);
    CHECK(window.value(tag) == view::name_of(view::BucketPhase::kEmpty));
  }
}

TEST_CASE("period and comma step to the next and the previous drop, start or end of a bucket") {
  Harness window;
  open_buckets(window, "laptop");
  const app::Document& document = *window.session().document();
  const TraceIndex index(document.plan, document.shown_step());
  const view::Buckets buckets(index, 0);
  go(window, document.shown_step().begin);
  window.type(".");
  REQUIRE(window.session().cursor);
  const Nanoseconds first = *window.session().cursor;
  for (const view::BucketLaunch& it : buckets.launches()) {
    CHECK(first <= it.first_filled);
  }
  window.type(".");
  CHECK(*window.session().cursor > first);
  window.type(",");
  CHECK(*window.session().cursor == first);
  window.type(",");
  CHECK(*window.session().cursor == document.shown_step().begin);
}

TEST_CASE("Space plays the step to its end and stops there") {
  Harness window;
  open_buckets(window, "laptop");
  const TraceStep& step = window.session().document()->shown_step();
  go(window, step.begin + (step.end - step.begin) * 95 / 100);
  window.press(ui::Key::kSpace);
  CHECK(window.session().playing);
  const Nanoseconds soon = *window.session().cursor;
  window.frames(5);
  CHECK(*window.session().cursor > soon);
  window.frames(60);
  CHECK(*window.session().cursor == step.end);
  CHECK_FALSE(window.session().playing);
  window.press(ui::Key::kSpace);  // again, from the begin
  CHECK(*window.session().cursor < (step.begin + step.end) / 2);
  window.press(ui::Key::kSpace);
  CHECK_FALSE(window.session().playing);
}

TEST_CASE("a click on a bucket selects its reduction, brackets go to its neighbours") {
  Harness window;
  open_buckets(window, "ddp");
  window.click("bucket.B");
  REQUIRE(window.session().selection);
  window.frames(1);
  CHECK(window.value("details.bucket") == "B");
  window.type("]");
  window.frames(2);
  CHECK(window.value("details.bucket") == "C");
  window.type("[");
  window.type("[");
  window.type("[");
  window.frames(2);
  CHECK(window.value("details.bucket") == "A");
  window.press(ui::Key::kEscape);
  CHECK_FALSE(window.session().selection);
}

TEST_CASE("where parameters are sharded the bucket view says why it is empty") {
  Harness window;
  open_buckets(window, "fsdp");
  CHECK_THAT(window.value("buckets.empty"), Catch::Matchers::ContainsSubstring("unit by unit"));
}

TEST_CASE("the bucket view still has buckets and time in a window of 640 by 400") {
  Harness window(640, 400);
  open_buckets(window, "ddp");
  CHECK(window.shows("bucket.A"));
  const ui::Tag lanes = window.tag("buckets.lanes");
  CHECK(lanes.max.x - lanes.min.x > 100);
  CHECK(lanes.max.y < 400);
}
