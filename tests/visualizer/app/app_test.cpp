// The program driven as a person would, without a window: figures are compared with what the
// simulator's own facade says, not with what the program stored.
#include <cmath>
#include <fstream>
#include <string>

#include "core/io/scenario_io.h"
#include "core/io/trace_io.h"
#include "core/memory_report.h"
#include "core/planner/planner.h"
#include "core/report.h"
#include "simulator/simulate.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/visualizer/support/harness.h"
#include "visualizer/app/presets.h"

using namespace lockstep;
using lockstep::test::Harness;
using lockstep::test::TemporaryFolder;

namespace {

struct Truth {
  Report report;
  MemoryReport memory;
};

/// As cli/simulate_command.cpp does it.
Truth truth_of(Scenario scenario) {
  scenario = resolved(std::move(scenario));
  require_valid(scenario);
  const Plan plan = make_plan(scenario, {false, false});
  const sim::Simulation run = sim::simulate(plan, scenario.cluster);
  return {make_report(plan, run.trace, report_facts(scenario)),
          memory_report(scenario, {.plan = &plan})};
}

double number(const std::string& text) {
  return std::stod(text);
}

void check_cards(Harness& window, const Truth& truth) {
  CHECK(number(window.value("metric.step_time")) == truth.report.step_time_s());
  CHECK(number(window.value("metric.tokens")) == truth.report.tokens_per_s());
  CHECK(number(window.value("metric.mfu")) == truth.report.mfu());
  CHECK(number(window.value("metric.peak_memory")) ==
        static_cast<double>(truth.memory.worst().peak_bytes()));
  CHECK(number(window.value("metric.exposed")) == truth.report.exposed_fraction());
  CHECK(number(window.value("metric.bubble")) == truth.report.bubble_fraction());
}

}  // namespace

TEST_CASE("every preset opens and its cards are the simulator's figures") {
  Harness window;
  for (const app::Preset& preset : app::presets()) {
    INFO(preset.id);
    window.open(std::string(preset.id));
    REQUIRE(window.session().error().empty());
    REQUIRE(window.session().problems().empty());
    check_cards(window, truth_of(app::preset_scenario(preset)));
  }
}

TEST_CASE("an example that is clicked, and a degree that is typed, change the figures") {
  Harness window(1280, 1400);
  window.click("preset.ddp");
  window.settle();
  Scenario scenario = app::preset_scenario(*app::find_preset("ddp"));
  check_cards(window, truth_of(scenario));

  window.command("data parallel (dp)");  // "Go to: Data parallel (dp)"
  window.type("2");
  window.press(ui::Key::kEnter);
  window.settle();
  scenario.strategy.data.degree = 2;
  CHECK(window.session().scenario().strategy.data.degree == 2);
  check_cards(window, truth_of(scenario));

  window.press(ui::Key::kZ, ui::kControl);
  window.settle();
  scenario.strategy.data.degree = 4;
  check_cards(window, truth_of(scenario));
  window.press(ui::Key::kY, ui::kControl);
  window.settle();
  CHECK(window.session().scenario().strategy.data.degree == 2);
}

TEST_CASE("a step button goes to the next legal value and is greyed where there is none") {
  Harness window(1280, 1400);
  window.open("fsdp");
  window.click("strategy.data.degree.more");
  window.settle();
  CHECK(window.session().scenario().strategy.data.degree == 16);
  CHECK(resolved(window.session().scenario()).cluster.nodes == 2);
  CHECK(window.session().problems().empty());
  CHECK_FALSE(window.tag("strategy.tensor.degree.less").enabled);
}

TEST_CASE("a choice that breaks a rule is greyed with the reason and does nothing") {
  Harness window(1280, 1400);
  window.open("pipeline");
  window.click("strategy.data.kind");
  window.frames(2);
  int refused = 0;
  for (const std::string kind : {"dp", "ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"}) {
    INFO(kind);
    Scenario scenario = window.session().scenario();
    set_key(scenario, "strategy.data.kind", kind);
    const bool legal = validate(resolved(scenario)).empty();
    const ui::Tag tag = window.tag("strategy.data.kind." + kind);
    CHECK(tag.enabled == legal);
    CHECK(tag.value.empty() == legal);
    refused += legal ? 0 : 1;
  }
  CHECK(refused > 0);
}

TEST_CASE("a value that is not legal is said at its field, and nothing is simulated") {
  Harness window(1280, 1400);
  window.open("pipeline");
  const app::DocumentPtr before = window.session().document();
  window.session().edit([](Scenario& s) { s.training.micro_batch = 0; });
  window.settle();
  CHECK(window.shows("problem.training.micro_batch"));
  CHECK(window.session().document() == before);
  window.press(ui::Key::kZ, ui::kControl);
  window.settle();
  CHECK_FALSE(window.shows("problem.training.micro_batch"));
}

TEST_CASE("a pinned baseline shows what changed and which way") {
  Harness window(1280, 1400);
  window.open("ddp");
  window.press(ui::Key::kP);
  CHECK_FALSE(window.shows("metric.step_time.difference"));
  const double before = number(window.value("metric.step_time"));
  window.session().edit([](Scenario& s) { s.training.micro_batch = 8; });
  window.settle();
  const double after = number(window.value("metric.step_time"));
  CHECK(after > before);
  CHECK(window.value("metric.step_time.difference") ==
        fmt::format("{:+.1f} %", 100 * (after / before - 1)));
}

TEST_CASE("a trace file shows the figures of its report, and editing simulates again") {
  const TemporaryFolder folder;
  const std::string path = folder.file("trace.lstrace");
  const Scenario scenario = resolved(app::preset_scenario(*app::find_preset("laptop")));
  const Plan plan = make_plan(scenario, {false, false});
  Trace trace = sim::simulate(plan, scenario.cluster).trace;
  for (TraceStep& step : trace.steps) {
    step.end += 1'000'000;  // idle at the end, so that it is not what would be simulated
  }
  save_trace(path, scenario, plan, trace);
  Harness window;
  window.open(path);
  REQUIRE(window.session().error().empty());
  CHECK(number(window.value("metric.step_time")) ==
        make_report(plan, trace, report_facts(scenario)).step_time_s());
  CHECK(window.app().settings().recent.front() == path);
  window.session().edit([](Scenario& s) { s.training.micro_batch = 1; });
  window.settle();
  CHECK(window.value("source") == "simulated");
  window.session().undo();
  window.frames(2);
  CHECK(number(window.value("metric.step_time")) ==
        make_report(plan, trace, report_facts(scenario)).step_time_s());
}

TEST_CASE("files that are not what they should be give a dialog, and the program goes on") {
  Harness window;
  const TemporaryFolder folder;
  const std::string path = folder.file("bad.json");
  const std::vector<std::string> contents{
      "", "{", "[1, 2]", "{\"schema_version\": 99}", "LSTRACE\n", std::string("\0\x01\xff", 3)};
  for (const std::string& content : contents) {
    std::ofstream(path, std::ios::binary) << content;
    INFO(content);
    window.open(path);
    REQUIRE(window.shows("dialog.error"));
    CHECK(window.value("dialog.error").find(path) != std::string::npos);
    window.press(ui::Key::kEscape);
    CHECK_FALSE(window.shows("dialog.error"));
    CHECK_FALSE(window.session().has_scenario());
  }
  window.open("/nowhere/at/all");
  CHECK(window.shows("dialog.error"));
  window.press(ui::Key::kEscape);
  window.open("ddp");
  CHECK(window.shows("metric.mfu"));
}

TEST_CASE("Esc closes every dialog") {
  Harness window;
  window.open("ddp");
  const auto dialog = [&] { return window.app().shell().dialogs().current(); };
  window.press(ui::Key::kP, ui::kControl | ui::kShift);
  CHECK(dialog() == app::Dialog::kPalette);
  window.press(ui::Key::kEscape);
  CHECK(dialog() == app::Dialog::kNone);
  window.press(ui::Key::kF1);
  CHECK(dialog() == app::Dialog::kGlossary);
  window.press(ui::Key::kEscape);
  window.type("?");
  CHECK(dialog() == app::Dialog::kKeys);
  window.press(ui::Key::kEscape);
  window.press(ui::Key::kO, ui::kControl);
  CHECK(dialog() == app::Dialog::kOpen);
  window.press(ui::Key::kEscape);
  window.press(ui::Key::kT);
  CHECK(dialog() == app::Dialog::kText);
  CHECK(window.value("dialog.text").find("rank 0") != std::string::npos);
  window.press(ui::Key::kEscape);
  CHECK(dialog() == app::Dialog::kNone);
}

TEST_CASE("theme, language and scale change by the palette, and pictures are the same twice") {
  const auto run = [] {
    Harness window(640, 400);
    window.open("ddp");
    window.command("theme.light");
    window.command("language.zh");
    window.command("scale.larger");
    window.frames(3);
    CHECK(window.app().settings().theme == ui::ThemeId::kLight);
    CHECK(window.app().settings().language == ui::Language::kChinese);
    CHECK(window.app().settings().scale == 1.25F);
    return window.picture().pixels;
  };
  const auto first = run();
  CHECK(first == run());
}
