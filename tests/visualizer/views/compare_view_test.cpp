// Two steps side by side, driven by mouse and keyboard; figures are those of the documents.
#include <string>

#include "core/io/trace_io.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/visualizer/support/harness.h"
#include "visualizer/options.h"

using namespace lockstep;
using lockstep::test::Harness;
using lockstep::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

Nanoseconds length_of(const app::Document& document) {
  return document.shown_step().end - document.shown_step().begin;
}

/// A is the preset, B the same with more work.
void pin_and_change(Harness& window) {
  window.open("laptop");
  window.press(ui::Key::kC);
  window.press(ui::Key::kP);
  window.session().edit([](Scenario& it) { it.training.micro_batch = 4; });
  window.settle();
}

}  // namespace

TEST_CASE("without a baseline the comparison says how to get one, and a button pins") {
  Harness window;
  window.open("laptop");
  window.press(ui::Key::kC);
  CHECK(std::string(window.app().shell().view().id()) == "compare");
  CHECK(window.shows("compare.empty"));
  window.click("compare.pin");
  CHECK(window.session().baseline() == window.session().document());
  CHECK(window.shows("compare.empty"));  // a run differs in nothing from itself
  CHECK_FALSE(window.shows("compare.pin"));
}

TEST_CASE("what is shown is compared with what was pinned") {
  Harness window;
  pin_and_change(window);
  const app::Document& a = *window.session().baseline();
  const app::Document& b = *window.session().document();
  REQUIRE(length_of(b) > length_of(a));
  CHECK(window.value("compare.difference") == std::to_string(length_of(b) - length_of(a)));
  CHECK(window.shows("compare.a.body"));
  CHECK(window.shows("compare.b.body"));
  const Nanoseconds first = std::stoll(window.value("compare.row.0"));
  const Nanoseconds second = std::stoll(window.value("compare.row.1"));
  CHECK(std::abs(first) >= std::abs(second));
  // The split of both adds up to the steps, so its differences add up to that of the steps.
  double sum = 0;
  const auto& tags = window.app().tags().all();
  for (const auto& [name, tag] : tags) {
    if (name == "compare.sum.compute" || name.starts_with("compare.sum.exposed") ||
        name == "compare.sum.bubble" || name == "compare.sum.idle" || name == "compare.sum.host" ||
        name == "compare.sum.waiting" || name == "compare.sum.recompute") {
      sum += std::stod(tag.value);
    }
  }
  CHECK(sum > 0);
}

TEST_CASE("a row of the differences is selected in both timelines, comma and point walk") {
  Harness window;
  pin_and_change(window);
  window.click("compare.row.0");
  REQUIRE(window.session().selection);
  const app::Selection first = *window.session().selection;
  CHECK(window.shows("details.in A"));
  window.type(".");
  CHECK_FALSE(*window.session().selection == first);
  window.type(",");
  CHECK(*window.session().selection == first);
  window.press(ui::Key::kEscape);
  CHECK_FALSE(window.session().selection);
}

TEST_CASE("the two timelines zoom together, whichever is moved") {
  Harness window;
  pin_and_change(window);
  for (const char* side : {"compare.a.body", "compare.b.body"}) {
    const auto before = window.picture().pixels;
    window.wheel(window.tag(side).centre(), 5);
    window.move(ImVec2(5, 5));
    const auto near = window.picture().pixels;
    CHECK(near != before);
    window.wheel(window.tag(side).centre(), -50);
    window.move(ImVec2(5, 5));
  }
  window.click("compare.sync.2");
  CHECK(window.value("compare.sync.2") == "current");
  window.press(ui::Key::kY);
  CHECK(window.value("compare.sync.0") == "current");
}

TEST_CASE("a second file is compared with the first, at once or from the dialog") {
  CHECK(parse_view_options({"a", "b"}).baseline == "a");
  CHECK(parse_view_options({"a", "b"}).file == "b");
  Harness window;
  window.session().open("ddp", "fsdp");
  window.settle();
  window.app().shell().show_view("compare");
  window.settle();
  REQUIRE(window.session().baseline());
  CHECK(window.session().baseline()->scenario.strategy.data.kind == DataKind::kFsdp);
  CHECK(window.session().document()->scenario.strategy.data.kind == DataKind::kDdp);
  CHECK(window.shows("compare.difference"));
  window.session().unpin();
  window.frames(2);
  window.click("compare.open");
  CHECK(window.app().shell().dialogs().current() == app::Dialog::kOpen);
  window.app().shell().dialogs().on_open("laptop");
  window.settle();
  REQUIRE(window.session().baseline());
  CHECK(window.session().baseline()->scenario.cluster.name !=
        window.session().document()->scenario.cluster.name);
  window.app().shell().dialogs().on_open("nowhere");
  window.settle();
  CHECK(window.shows("dialog.error"));
}

TEST_CASE("a measured run is compared with the simulation of its own scenario") {
  Harness window;
  window.open("laptop");
  const app::Document& simulated = *window.session().document();
  // A measured trace: the simulated one with everything twice as slow.
  Trace trace = simulated.trace;
  trace.source = TraceSource::kMeasured;
  const TemporaryFolder folder;
  const std::string file = folder.file("twice.lstrace");
  save_trace(file, simulated.scenario, simulated.plan, trace);
  window.open(file);
  REQUIRE(window.session().document()->trace.source == TraceSource::kMeasured);
  window.app().shell().show_view("compare");
  window.settle();
  CHECK(window.session().baseline() == nullptr);
  CHECK(window.value("compare.difference") == "0");
  CHECK(window.value("compare.row.0") == "0");
}
