// Strategies side by side, driven by mouse and keyboard; figures are those of the reports.
#include <string>

#include "tests/support/catch.h"
#include "tests/visualizer/support/harness.h"

using namespace lockstep;
using lockstep::test::Harness;

namespace {

Harness& with_budget(Harness& window, const std::string& preset) {
  window.open(preset);
  window.app().shell().show_view("budget");
  window.settle();
  return window;
}

}  // namespace

TEST_CASE("the table of strategies is computed beside the window and ends up whole") {
  Harness window;
  window.open("laptop");
  window.app().shell().show_view("budget");
  window.frames(1);  // asks; whatever is finished by now, the frame came back
  CHECK(window.shows("budget.state"));
  window.settle();
  CHECK(window.value("budget.state") == "finished");
  const app::Document& document = *window.session().document();
  CHECK(window.value("budget.row.current") == std::to_string(document.memory.worst().peak_bytes()));
  for (const char* words : {"ddp", "zero1", "zero2", "zero3", "fsdp"}) {
    CHECK(window.value(std::string("budget.row.") + words) != "computing");
  }
}

TEST_CASE("a click on a strategy uses it in one step that undo takes back") {
  Harness window;
  with_budget(window, "laptop");
  const Scenario before = window.session().scenario();
  const std::string peak = window.value("budget.row.fsdp");
  window.click("budget.row.fsdp");
  window.settle();
  CHECK(window.session().scenario().strategy.data.kind == DataKind::kFsdp);
  CHECK(window.session().scenario().strategy.data.degree == before.strategy.data.degree);
  CHECK(window.session().problems().empty());
  // What the table promised is what the simulation of the whole scenario finds.
  CHECK(std::to_string(window.session().document()->memory.worst().peak_bytes()) == peak);
  CHECK(window.value("budget.row.current") == peak);
  window.session().undo();
  CHECK_FALSE(window.session().can_undo());
  CHECK(window.session().scenario().strategy.data.kind == before.strategy.data.kind);
}

TEST_CASE("arrows choose a strategy without using it, Enter uses it") {
  Harness window;
  with_budget(window, "laptop");
  window.press(ui::Key::kDown);
  window.press(ui::Key::kDown);
  CHECK_FALSE(window.session().can_undo());
  CHECK(window.value("details.strategy") == "zero1");
  window.press(ui::Key::kEnter);
  CHECK(window.session().can_undo());
  CHECK(window.session().scenario().strategy.data.kind == DataKind::kZero1);
}

TEST_CASE("a part of a bar shows its formulas, and its terms add up to it") {
  Harness window;
  with_budget(window, "fsdp");
  window.press(ui::Key::kRight);
  CHECK(window.value("details.what").find("parameter") != std::string::npos);
  const app::Document& document = *window.session().document();
  const std::int64_t bytes =
      document.memory.worst().bytes[static_cast<std::size_t>(Category::kParameter)];
  CHECK(window.value("budget.bar.0.parameter") == std::to_string(bytes));
  CHECK(window.value("budget.device") == std::to_string(document.memory.device_bytes));
  window.click("budget.bar.0.activation");
  CHECK(window.value("details.what").find("activation") != std::string::npos);
}

TEST_CASE("a strategy that cannot be is not used and says why") {
  Harness window;
  with_budget(window, "mix");
  window.click("budget.row.ddp");
  CHECK_FALSE(window.session().can_undo());
  CHECK_FALSE(window.value("budget.refused").empty());
  CHECK_FALSE(window.value("details.why not").empty());
}

TEST_CASE("an edit while the table is computed starts it anew") {
  Harness window;
  window.open("laptop");
  window.app().shell().show_view("budget");
  for (int i = 0; i < 5; ++i) {
    window.session().edit([&](Scenario& it) { it.training.micro_batch = 1 + i % 2; });
    window.frames(2);
  }
  window.settle();
  const app::Document& document = *window.session().document();
  CHECK(window.value("budget.state") == "finished");
  CHECK(window.value("budget.row.current") == std::to_string(document.memory.worst().peak_bytes()));
}
