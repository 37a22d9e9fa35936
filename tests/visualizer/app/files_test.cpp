// What the window writes, asks before it forgets, and ends when it is told to: driven by keys and
// tags; what was written is read back by the readers of the core, and held against what the
// command line's own calls give.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/io/kineto_trace.h"
#include "core/io/scenario_io.h"
#include "core/io/trace_export.h"
#include "core/planner/planner.h"
#include "core/planner/schedule/action_csv.h"
#include "simulator/simulate.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/visualizer/support/harness.h"
#include "visualizer/app/export.h"
#include "visualizer/app/presets.h"
#include "visualizer/app/strategy_table.h"
#include "visualizer/views/budget_view.h"

using namespace lockstep;
using lockstep::test::Harness;
using lockstep::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

app::Dialog dialog(Harness& window) {
  return window.app().shell().dialogs().current();
}

/// Over what stands in the text box that has the keyboard.
void type_over(Harness& window, const std::string& text) {
  window.press(ui::Key::kA, ui::kControl);
  window.type(text);
}

void export_as(Harness& window, const std::string& form, const std::string& path) {
  window.press(ui::Key::kE);
  REQUIRE(dialog(window) == app::Dialog::kExport);
  window.click("export." + form);
  window.click("export.path");
  type_over(window, path);
  window.press(ui::Key::kEnter);
  window.frames(20);
  window.settle();
  window.frames(2);
}

/// Simulated for minutes, if nobody ends it.
Scenario huge() {
  Scenario scenario = app::preset_scenario(*app::find_preset("mix"));
  scenario.strategy.data.degree = 1;
  scenario.strategy.tensor.degree = 1;
  scenario.strategy.tensor.sequence_parallel = false;
  scenario.strategy.pipeline.degree = 16;
  scenario.training.accumulate = 2048;
  return scenario;
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("traces are exported as the bytes that lockstep trace --format writes") {
  const TemporaryFolder folder;
  Harness window;
  window.open("ddp");
  const app::Document& document = *window.session().document();
  for (const std::string form : {"chrome", "memory_viz", "csv", "json"}) {
    INFO(form);
    export_as(window, form, folder.file(form));
    CHECK(window.value("status") == "Wrote " + folder.file(form));
    const std::string other = folder.file("other");
    export_trace(
        {parse_trace_form(form).value(), other}, document.scenario, document.plan, document.trace);
    REQUIRE(fs::exists(folder.file(form)));
    CHECK(content(folder.file(form)) == content(other));
  }
  export_as(window, "kineto", folder.file("profiles"));
  CHECK(fs::exists(folder.file("profiles/" + kineto_file_name(0))));
}

TEST_CASE("pictures, drawings and figures of a view are exported whole") {
  const TemporaryFolder folder;
  Harness window(640, 400);
  window.open("pipeline");
  export_as(window, "png", folder.file("window.png"));
  CHECK(content(folder.file("window.png")).starts_with("\x89PNG"));
  export_as(window, "svg", folder.file("timeline.svg"));
  CHECK(content(folder.file("timeline.svg")).ends_with("</svg>\n"));
  export_as(window, "view_json", folder.file("timeline.json"));
  CHECK(content(folder.file("timeline.json")).find("\"view\": \"timeline\"") != std::string::npos);
  window.command("view.pipeline");
  export_as(window, "actions", folder.file("schedule.csv"));
  CHECK(read_action_csv(content(folder.file("schedule.csv"))) ==
        compute_only(pipeline_schedule(window.session().document()->scenario)));
}

TEST_CASE("a form that what is shown has not is greyed with the reason") {
  Harness window;
  window.open("ddp");
  window.command("view.budget");
  window.settle();
  window.press(ui::Key::kE);
  CHECK_FALSE(window.tag("export.svg").enabled);
  CHECK_FALSE(window.value("export.svg").empty());
  CHECK_FALSE(window.tag("export.actions").enabled);
  CHECK(window.tag("export.chrome").enabled);
}

TEST_CASE("arrows choose a form, and the file's name follows") {
  Harness window;
  window.open("ddp");
  window.press(ui::Key::kE);
  CHECK(window.value("export.path").ends_with("ddp-timeline.png"));
  window.press(ui::Key::kDown);
  CHECK(window.value("export.path").ends_with("ddp-timeline.svg"));
  window.press(ui::Key::kUp);
  CHECK(window.value("export.path").ends_with("ddp-timeline.png"));
}

TEST_CASE("what is there already is replaced only when that is confirmed") {
  const TemporaryFolder folder;
  const std::string path = folder.file("step.csv");
  std::ofstream(path) << "mine";
  Harness window;
  window.open("ddp");
  export_as(window, "csv", path);
  CHECK(window.shows("export.exists"));
  CHECK(content(path) == "mine");
  window.click("export.write");
  window.settle();
  CHECK(content(path).size() > 100);
  CHECK(folder.entries() == 1);
}

TEST_CASE("a path that cannot be written gives a dialog, and nothing is left") {
  const TemporaryFolder folder;
  Harness window;
  window.open("ddp");
  export_as(window, "chrome", folder.file("no/such/folder.json"));
  REQUIRE(window.shows("dialog.error"));
  CHECK(window.value("dialog.error").find("no/such") != std::string::npos);
  CHECK(folder.entries() == 0);
}

TEST_CASE("an edited scenario is marked in the title until it is saved, and reads back the same") {
  const TemporaryFolder folder;
  Harness window;
  window.open("ddp");
  CHECK(window.app().shell().title() == "ddp - Lockstep");
  window.session().edit([](Scenario& s) { s.training.micro_batch = 8; });
  window.settle();
  CHECK(window.app().shell().title() == "ddp * - Lockstep");
  window.press(ui::Key::kS, ui::kControl);
  REQUIRE(dialog(window) == app::Dialog::kSaveAs);
  type_over(window, folder.file("mine.json"));
  window.press(ui::Key::kEnter);
  CHECK(window.app().shell().title() == "mine.json - Lockstep");
  CHECK(scenario_text(load_scenario(folder.file("mine.json"))) ==
        scenario_text(window.session().scenario()));
  // Undo is another scenario than the saved one; redo is the same again.
  window.press(ui::Key::kZ, ui::kControl);
  CHECK(window.session().unsaved());
  window.press(ui::Key::kY, ui::kControl);
  CHECK_FALSE(window.session().unsaved());
  // To its own file without a question.
  window.session().edit([](Scenario& s) { s.training.micro_batch = 2; });
  window.press(ui::Key::kS, ui::kControl);
  CHECK(dialog(window) == app::Dialog::kNone);
  CHECK(load_scenario(folder.file("mine.json")).training.micro_batch == 2);
}

TEST_CASE("opening another file asks about edits; Cancel keeps them, Discard does not") {
  Harness window;
  window.open("ddp");
  window.session().edit([](Scenario& s) { s.training.micro_batch = 8; });
  window.app().shell().open("fsdp");
  window.frames(2);
  REQUIRE(dialog(window) == app::Dialog::kUnsaved);
  window.click("unsaved.cancel");
  window.settle();
  CHECK(window.session().scenario().name == "ddp");
  window.app().shell().open("fsdp");
  window.frames(2);
  window.click("unsaved.discard");
  window.settle();
  CHECK(window.session().scenario().name == "fsdp");
  CHECK_FALSE(window.session().unsaved());
}

TEST_CASE("Save before opening another goes on to open it") {
  const TemporaryFolder folder;
  Harness window;
  window.open("ddp");
  window.session().edit([](Scenario& s) { s.training.micro_batch = 8; });
  window.app().shell().open("fsdp");
  window.frames(2);
  window.click("unsaved.save");
  REQUIRE(dialog(window) == app::Dialog::kSaveAs);
  type_over(window, folder.file("kept.json"));
  window.press(ui::Key::kEnter);
  window.settle();
  CHECK(window.session().scenario().name == "fsdp");
  CHECK(load_scenario(folder.file("kept.json")).training.micro_batch == 8);
}

TEST_CASE("quitting with edits asks first") {
  {
    Harness window;
    window.open("ddp");
    window.app().shell().quit();
    CHECK(window.app().shell().wants_to_quit());
  }
  Harness other;
  other.open("ddp");
  other.session().edit([](Scenario& s) { s.training.micro_batch = 8; });
  other.app().shell().quit();
  other.frames(2);
  CHECK_FALSE(other.app().shell().wants_to_quit());
  other.press(ui::Key::kEscape);
  CHECK_FALSE(other.app().shell().wants_to_quit());
  other.app().shell().quit();
  other.frames(2);
  other.click("unsaved.discard");
  CHECK(other.app().shell().wants_to_quit());
}

TEST_CASE("Home keeps what is open: going back brings undo, cursor and figures") {
  Harness window;
  window.open("ddp");
  window.session().edit([](Scenario& s) { s.training.micro_batch = 8; });
  window.settle();
  window.command("view.memory");
  window.session().cursor = window.session().document()->shown_step().begin + 5'000'000;
  window.frames(3);
  const std::optional<Nanoseconds> cursor = window.session().cursor;
  const app::DocumentPtr before = window.session().document();
  window.click("top.home");
  CHECK(window.shows("start.back"));
  CHECK_FALSE(window.shows("metric.mfu"));
  window.click("start.back");
  CHECK(window.shows("metric.mfu"));
  CHECK(window.session().document() == before);
  CHECK(window.session().cursor == cursor);
  CHECK(std::string(window.app().shell().view().id()) == "memory");
  CHECK(window.session().can_undo());
  window.command("home");
  window.press(ui::Key::kEscape);
  CHECK(window.shows("metric.mfu"));
}

TEST_CASE("a long simulation is cancelled by Esc, says so, and what was shown stays") {
  Harness window;
  window.open("ddp");
  const app::DocumentPtr before = window.session().document();
  window.session().edit([](Scenario& s) { s = huge(); });
  for (int i = 0; i < 500 && window.session().seconds() < 1.1; ++i) {
    window.frames(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  window.frames(2);
  REQUIRE(window.shows("status.cancel"));
  CHECK(window.value("status").find("simulating") == 0);
  window.press(ui::Key::kEscape);
  CHECK(seconds_of([&] { window.settle(); }) < 2);
  window.frames(2);
  CHECK(window.session().cancelled());
  CHECK(window.session().document() == before);
  CHECK(window.shows("status.again"));
  window.press(ui::Key::kZ, ui::kControl);
  window.settle();
  CHECK_FALSE(window.session().cancelled());
}

TEST_CASE("a newer edit ends a long simulation, and leaving the program does not wait for it") {
  CHECK(seconds_of([] {
          Harness window;
          window.session().start(huge());
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          window.session().edit(
              [](Scenario& s) { s = app::preset_scenario(*app::find_preset("ddp")); });
          window.settle();
          CHECK(window.shows("metric.mfu"));
          window.session().start(huge());
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
        }) < 5);
}

TEST_CASE("the strategy table is computed only while it is looked at, and rows are not twice") {
  Harness window;
  window.open("ddp");
  const auto* view =
      dynamic_cast<const views::BudgetView*>(window.app().shell().all_views()[1].get());
  REQUIRE(view != nullptr);
  window.session().edit([](Scenario& s) { s.training.micro_batch = 8; });
  window.settle();
  CHECK(view->table() == nullptr);  // never looked at
  window.command("view.budget");
  window.settle();
  const auto first = view->table();
  REQUIRE(first->finished());
  CHECK(first->simulated() > 1);
  // Another strategy on the same devices: the rows beside it stay what they are.
  window.session().edit([](Scenario& s) { s.strategy.data.kind = DataKind::kZero1; });
  window.settle();
  const auto second = view->table();
  REQUIRE(second != first);
  CHECK(second->finished());
  CHECK(second->simulated() <= 1);
  window.command("view.timeline");
  window.session().edit([](Scenario& s) { s.training.micro_batch = 2; });
  window.settle();
  CHECK(view->table() == second);
}

TEST_CASE("an export whose owner lets go leaves nothing behind") {
  const TemporaryFolder folder;
  const app::DocumentPtr document =
      app::simulate_document(app::preset_scenario(*app::find_preset("pipeline")));
  app::ExportErrand errand(
      folder.file("step.json"),
      app::trace_writer(app::ExportForm::kChrome, document, folder.file("step.json")));
  int passed = 0;
  CHECK_THROWS_AS(errand.step([&] {
    if (++passed == 3) {
      throw InterruptedError("test", "no longer wanted");
    }
  }),
                  InterruptedError);
  CHECK(folder.entries() == 0);
  CHECK_FALSE(errand.done());
}

TEST_CASE("planning and simulating pass checkpoints and end where one throws") {
  const Scenario scenario = resolved(app::preset_scenario(*app::find_preset("mix")));
  int passed = 0;
  PlanOptions options{false, false, [&] { ++passed; }};
  const Plan plan = make_plan(scenario, options);
  CHECK(passed > 1);
  options.stop_check = [] { throw InterruptedError("test", "no longer wanted"); };
  CHECK_THROWS_AS(make_plan(scenario, options), InterruptedError);

  sim::SimulationOptions simulation;
  passed = 0;
  simulation.stop_check = [&] { ++passed; };
  const sim::Simulation run = sim::simulate(plan, scenario.cluster, simulation);
  CHECK(passed > 1);
  CHECK(run.trace.steps.front().end ==
        sim::simulate(plan, scenario.cluster).trace.steps.front().end);
  simulation.stop_check = options.stop_check;
  CHECK_THROWS_AS(sim::simulate(plan, scenario.cluster, simulation), InterruptedError);
}
