// The pipeline view driven by mouse and keyboard; figures are the textbook's or the report's.
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "core/io/json_reader.h"
#include "core/planner/planner.h"
#include "core/planner/schedule/action_csv.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/visualizer/support/harness.h"

using namespace lockstep;
using Catch::Matchers::ContainsSubstring;
using lockstep::test::Harness;
using lockstep::test::TemporaryFolder;

namespace {

/// 1F1B of 4 stages and 8 micro-batches, in the mode that edits.
void open_editor(Harness& window) {
  window.open("pipeline");
  REQUIRE(window.app().shell().show_view("pipeline"));
  window.frames(2);
  window.click("pipeline.edit");
}

Schedule schedule_of(Harness& window) {
  return compute_only(pipeline_schedule(window.session().document()->scenario));
}

}  // namespace

TEST_CASE("the pipeline in unit time has the textbook's bubble, and a row as many in flight") {
  Harness window;
  open_editor(window);
  window.click("pipeline.unit");
  CHECK(window.value("pipeline.bubble") == "27.3");  // 3 / 11
  for (int stage = 0; stage < 4; ++stage) {
    CHECK(window.value("pipeline.peak." + std::to_string(stage)) == std::to_string(4 - stage));
  }
}

TEST_CASE("a move that breaks a dependency is refused with its name, and auto-fix makes it run") {
  Harness window;
  open_editor(window);
  window.move(window.tag("pipeline.grid").centre());
  window.press(ui::Key::kRight);  // 0F0
  CHECK(window.value("pipeline.selected") == "F0");
  for (int i = 0; i < 4; ++i) {
    window.press(ui::Key::kRight);
  }
  REQUIRE(window.value("pipeline.selected") == "B0");  // behind F0 to F3
  // Rank 1 does F2 before B0, so 0F2 has to come first here; 0F3 has not.
  window.press(ui::Key::kLeft, ui::kShift);
  CHECK_THAT(window.value("pipeline.message"), ContainsSubstring("Edited"));
  window.press(ui::Key::kLeft, ui::kShift);
  CHECK_THAT(window.value("pipeline.message"),
             ContainsSubstring("0B0 on rank 0 needs the gradient of stage 1 (1B0), which stands "
                               "behind 1F2 on rank 1"));
  window.press(ui::Key::kX);
  CHECK_THAT(window.value("pipeline.message"), !ContainsSubstring("cannot"));
  for (int i = 0; i < 6; ++i) {
    window.press(ui::Key::kBackspace);
  }
  CHECK(window.value("pipeline.bubble") == "27.3");
}

TEST_CASE("an edited schedule is applied, simulated, and undone with the scenario") {
  Harness window;
  open_editor(window);
  const Schedule given = schedule_of(window);
  window.move(window.tag("pipeline.grid").centre());
  for (int i = 0; i < 5; ++i) {
    window.press(ui::Key::kRight);
  }
  window.press(ui::Key::kLeft, ui::kShift);  // 0B0 before 0F3
  window.press(ui::Key::kEnter);
  window.settle();
  const Schedule applied = schedule_of(window);
  CHECK(applied != given);
  CHECK(action_text(applied.ranks[0][3]) == "0B0");
  CHECK(action_text(applied.ranks[0][4]) == "0F3");
  window.press(ui::Key::kZ, ui::kControl);
  window.settle();
  CHECK(schedule_of(window) == given);
}

TEST_CASE("a cell is dragged with the mouse to another place of its row") {
  Harness window;
  open_editor(window);
  window.move(window.tag("pipeline.grid").centre());
  for (int i = 0; i < 5; ++i) {
    window.press(ui::Key::kRight);
  }
  const ui::Tag cell = window.tag("pipeline.selected");
  REQUIRE(cell.value == "B0");
  // To the left end: before its own forward, which is refused.
  window.drag(cell.centre(), ImVec2(cell.min.x - 600, cell.centre().y));
  CHECK_THAT(window.value("pipeline.message"), ContainsSubstring("0B0 cannot run before 0F0"));
  // Behind the next backward, 0F4 0B1 lie between.
  window.drag(window.tag("pipeline.selected").centre(),
              ImVec2(cell.max.x + 2.6F * (cell.max.x - cell.min.x), cell.centre().y));
  CHECK_THAT(window.value("pipeline.message"), ContainsSubstring("Edited"));
}

TEST_CASE("unit costs are changed by keys and leave the fraction of 1F1B as it is") {
  Harness window;
  open_editor(window);
  window.move(window.tag("pipeline.grid").centre());
  window.type("k");  // tB
  window.press(ui::Key::kPageUp);
  CHECK(window.value("pipeline.cost.tB") == "2");
  CHECK(window.value("pipeline.bubble") == "27.3");  // 1F1B's fraction is the same for any cost
  window.press(ui::Key::kPageDown);
  CHECK(window.value("pipeline.cost.tB") == "1");
}

TEST_CASE("a schedule goes out as PyTorch's CSV and comes back") {
  Harness window;
  open_editor(window);
  const TemporaryFolder folder;
  const std::string path = folder.file("schedule.csv");
  window.move(window.tag("pipeline.grid").centre());
  window.type("i");
  window.frames(2);
  window.type(path);
  window.click("pipeline.export");
  CHECK_THAT(window.value("pipeline.message"), ContainsSubstring(path));
  const Schedule written = read_action_csv(read_text_file(path, "test"), path);
  CHECK(written == schedule_of(window));
  window.click("pipeline.import");
  CHECK_THAT(window.value("pipeline.message"), ContainsSubstring("Read"));
  std::remove(path.c_str());
  window.click("pipeline.import");
  CHECK_THAT(window.value("pipeline.message"), ContainsSubstring(path));
}

TEST_CASE("without a pipeline the view says what to set") {
  Harness window;
  window.open("ddp");
  REQUIRE(window.app().shell().show_view("pipeline"));
  window.frames(2);
  CHECK_THAT(window.value("view.empty"), ContainsSubstring("pp = 1"));
  window.click("pipeline.goto");
  window.frames(2);
  CHECK(window.shows("strategy.pipeline.degree"));
}
