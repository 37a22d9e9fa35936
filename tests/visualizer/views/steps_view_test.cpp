// The steps of a collective driven by mouse and keyboard. The moves come from the lockstep program
// beside the test program; what they must add up to is worked out here.
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/visualizer/support/harness.h"

using namespace lockstep;
using Catch::Matchers::ContainsSubstring;
using lockstep::test::Harness;
using lockstep::test::TemporaryFolder;

namespace {

void open_steps(Harness& window) {
  window.open("ddp");
  REQUIRE(window.app().shell().show_view("steps"));
  window.frames(1);  // asks
  window.settle();
  window.move(window.tag("steps.picture").centre());
}

/// A ring of two ranks and two bytes, by hand: each adds one half and passes on the other.
constexpr const char* kByHand = R"({"schema_version": 1, "collective": "all_reduce",
  "algorithm": "ring", "dtype": "fp32", "ranks": 2, "root": 0, "message_bytes": 8, "time_ns": 40,
  "moves": [
  {"step": 0, "src": 1, "dst": 0, "chunk": 1, "begin": 4, "bytes": 4, "reduces": true,
   "start_ns": 0, "end_ns": 10},
  {"step": 0, "src": 0, "dst": 1, "chunk": 0, "begin": 0, "bytes": 4, "reduces": true,
   "start_ns": 0, "end_ns": 10},
  {"step": 1, "src": 1, "dst": 0, "chunk": 0, "begin": 0, "bytes": 4, "reduces": false,
   "start_ns": 20, "end_ns": 30},
  {"step": 1, "src": 0, "dst": 1, "chunk": 1, "begin": 4, "bytes": 4, "reduces": false,
   "start_ns": 20, "end_ns": 30}]})";

}  // namespace

TEST_CASE("a ring of 4 sends 2 (N-1) / N of the message on every rank and ends with all sums") {
  Harness window;
  open_steps(window);
  CHECK(window.value("steps.position") == "1");
  window.press(ui::Key::kEnd);
  CHECK(window.value("steps.position") == "6");
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(window.value(fmt::format("steps.sent.{}", rank)) == "1536");  // of 1024 bytes
    for (int chunk = 0; chunk < 4; ++chunk) {
      CHECK(window.value(fmt::format("steps.cell.{}.{}", rank, chunk)) == "all");
    }
  }
  window.press(ui::Key::kHome);
  CHECK(window.value("steps.cell.2.3") == "2");
  window.press(ui::Key::kPageDown);
  CHECK(window.value("steps.position") == "3");  // N - 1 steps of adding lie behind
  window.press(ui::Key::kLeft);
  CHECK(window.value("steps.position") == "2");
}

TEST_CASE("another algorithm and number of ranks are carried out anew while the window goes on") {
  Harness window;
  open_steps(window);
  window.click("steps.tree");
  window.settle();
  window.click("steps.ranks.more");
  window.settle();
  REQUIRE(window.session().record() != nullptr);
  CHECK(window.session().record()->algorithm == "tree");
  CHECK(window.session().record()->ranks == 5);
  window.click("steps.last");
  CHECK(window.value("steps.cell.4.0") == "all");
}

TEST_CASE("a file of moves opens without a scenario and is walked through as it was made") {
  Harness window;
  const TemporaryFolder folder;
  const std::string path = folder.write("moves.json", kByHand);
  window.open(path);
  std::filesystem::remove(path);
  window.settle();
  CHECK(window.session().error().empty());
  CHECK(std::string(window.app().shell().view().id()) == "steps");
  CHECK(window.value("steps.position") == "1");
  CHECK(window.value("steps.cell.0.1") == "all");
  CHECK(window.value("steps.cell.0.0") == "0");
  CHECK(window.value("steps.sent.0") == "4");
  window.click("steps.back");
  CHECK(window.value("steps.cell.0.1") == "0");
  window.click_at(window.tag("steps.cell.1.0").centre());
  window.click("steps.last");
  CHECK_THAT(window.value("details.got it from"), ContainsSubstring("rank 0 in step 1"));
}

TEST_CASE("playing goes one step further in less than a second and stops at the end") {
  Harness window;
  open_steps(window);
  window.click("steps.play");
  window.frames(60);
  CHECK(window.value("steps.position") == "2");
  window.frames(60 * 6);
  CHECK(window.value("steps.position") == "6");
}

TEST_CASE("without the lockstep program the view says what is missing and what else can be done") {
  Harness window;
  window.session().collectives().set_program("/nowhere/lockstep");
  window.open("ddp");
  REQUIRE(window.app().shell().show_view("steps"));
  window.frames(1);
  window.settle();
  CHECK_THAT(window.value("steps.error"), ContainsSubstring("/nowhere/lockstep is missing"));
  CHECK_THAT(window.value("steps.error"), ContainsSubstring("lockstep collective --out"));
}
