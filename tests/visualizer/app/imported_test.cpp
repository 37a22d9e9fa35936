// Traces of other tools in the window: they open, bad ones are refused, and the program goes on.
#include <filesystem>
#include <string>

#include "core/io/files.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/visualizer/support/harness.h"

using namespace lockstep;
using lockstep::test::Harness;
using lockstep::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const std::string kFixtures = "tests/core/io/fixtures";

}  // namespace

TEST_CASE("a profiler's trace opens in the timeline with what is known of it") {
  Harness window;
  window.open(kFixtures + "/hand_written_gpu.pt.trace.json");
  REQUIRE(window.session().is_imported());
  CHECK(window.shows("lanes.body"));
  CHECK(window.value("source") == "imported");
  CHECK(window.value("imported.ranks") == "rank 3");
  CHECK(window.value("imported.world") == "4");
  CHECK(window.value("imported.backend") == "nccl");
  CHECK(window.value("imported.device") == "Imaginary GPU");
  CHECK(window.shows("busy.rank 3.exposed"));
  window.type(".");
  CHECK(window.shows("details.what"));
  window.press(ui::Key::kT);
  window.press(ui::Key::kEscape);
  CHECK(window.session().is_imported());
}

TEST_CASE("a folder with a file for each rank opens as one picture of all ranks") {
  const TemporaryFolder folder;
  for (const char* name : {"rank-0.pt.trace.json.gz", "rank-1.pt.trace.json.gz"}) {
    fs::copy_file(fs::path(kFixtures) / name, folder.path() / name);
  }
  Harness window;
  window.open(folder.path().string());
  REQUIRE(window.session().is_imported());
  CHECK(window.value("imported.ranks") == "rank 0, rank 1");
  CHECK(window.shows("busy.rank 1.transfers"));
}

TEST_CASE("views that need a plan say so for a foreign trace") {
  Harness window;
  window.open(kFixtures + "/rank-0.pt.trace.json.gz");
  for (const auto& view : window.app().shell().all_views()) {
    window.app().shell().show_view(view->id());
    window.frames(2);
    INFO(view->id());
    const bool refused =
        window.shows("view.empty") && window.value("view.empty") == ui::tr(ui::S::kEmptyImported);
    CHECK(refused == view->needs_plan());
    window.press(ui::Key::kT);
    window.press(ui::Key::kEscape);
    window.press(ui::Key::kP);  // nothing to pin
    CHECK(window.session().baseline() == nullptr);
  }
}

TEST_CASE("what is no trace is refused in a dialog, and what was open stays") {
  const TemporaryFolder folder;
  const std::string packed = read_whole(kFixtures + "/rank-0.pt.trace.json.gz", "test");
  const std::string plain = read_whole(kFixtures + "/hand_written_gpu.pt.trace.json", "test");
  fs::create_directory(folder.path() / "empty");
  const std::vector<std::string> bad{
      folder.write("empty.json", ""),
      folder.write("empty.json.gz", ""),
      folder.write("cut.json.gz", packed.substr(0, packed.size() / 2)),
      folder.write("cut.json", plain.substr(0, plain.size() / 2)),
      folder.write("noise.gz", "\x1f\x8bnot gzip at all"),
      folder.write("picture.png", "\x89PNG\r\n\x1a\n and so on"),
      folder.write("number.json", "17"),
      folder.write("no_events.json", R"({"traceEvents": 4})"),
      (folder.path() / "empty").string(),
      (folder.path() / "nowhere.json").string()};
  Harness window;
  window.open("laptop");
  const app::DocumentPtr before = window.session().document();
  for (const std::string& path : bad) {
    INFO(path);
    window.open(path);
    CHECK(window.shows("dialog.error"));
    window.press(ui::Key::kEscape);
    CHECK(window.app().shell().dialogs().current() == app::Dialog::kNone);
    CHECK(window.session().document() == before);
  }
  window.open(kFixtures + "/rank-1.pt.trace.json.gz");
  CHECK(window.session().is_imported());
  window.open("laptop");
  CHECK_FALSE(window.session().is_imported());
}
