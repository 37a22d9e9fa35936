// A monkey at mouse, keyboard and files: 10,000 frames with a fixed seed. Nothing may throw, no
// file may appear where it did not ask for one, and the window must still answer.
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/io/scenario_io.h"
#include "core/io/trace_io.h"
#include "core/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"
#include "tests/support/temporary_folder.h"
#include "tests/visualizer/support/harness.h"
#include "tests/visualizer/support/many_spans.h"
#include "visualizer/app/presets.h"

using namespace lockstep;
using lockstep::test::Harness;
namespace fs = std::filesystem;

namespace {

constexpr int kFrames = 10'000;
constexpr int kMostRanks = 16;

/// Paths that are typed without a folder lie here, and it is here that files are exported to.
class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& folder) : before_(fs::current_path()) {
    fs::current_path(folder);
  }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;
  ~WorkingFolder() { fs::current_path(before_); }

  std::set<std::string> names_outside() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(before_)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

 private:
  fs::path before_;
};

/// Good and bad ones, and what is none.
std::vector<std::string> make_files(const test::TemporaryFolder& folder) {
  std::vector<std::string> files{"laptop", "/nowhere/at/all", folder.path().string()};
  // A copy: what is exported lies beside what was opened.
  files.push_back(folder.file("gpu.pt.trace.json"));
  fs::copy_file("tests/core/io/fixtures/hand_written_gpu.pt.trace.json", files.back());
  const Scenario scenario = resolved(app::preset_scenario(*app::find_preset("laptop")));
  const Plan plan = make_plan(scenario, {false, false});
  const Trace trace = sim::simulate(plan, scenario.cluster).trace;
  const std::string good = folder.file("good.lstrace");
  save_trace(good, scenario, plan, trace);
  files.push_back(good);
  std::ifstream whole(good, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(whole), {});
  const auto add = [&](const std::string& name, const std::string& text) {
    files.push_back(folder.file(name));
    std::ofstream(files.back(), std::ios::binary) << text;
  };
  add("good.json", scenario_text(scenario));
  add("half.lstrace", bytes.substr(0, bytes.size() / 2));
  bytes[bytes.size() / 2] = static_cast<char>(~bytes[bytes.size() / 2]);
  add("changed.lstrace", bytes);
  add("empty.json", "");
  add("half.json", R"({"schema_version": 1, "name": )");
  add("wrong.json", R"({"schema_version": 1, "strategy": {"data": {"degree": -3}}})");
  add("half.pt.trace.json", R"({"traceEvents": [{"ph": "X", "ts": 1, "dur)");
  add("noise.json", std::string("\0\xff\x01{[", 5));
  return files;
}

class Monkey {
 public:
  Monkey(std::uint64_t seed, std::vector<std::string> files)
      : random_(seed), files_(std::move(files)) {}

  void act(Harness& window) {
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return click_something(window);
      case 4:
      case 5:
        return window.click_at(anywhere());
      case 6:
        return window.drag(anywhere(), anywhere());
      case 7:
        return window.wheel(anywhere(), static_cast<float>(below(9)) - 4);
      case 8:
      case 9:
      case 10:
        return window.press(key(), below(4) == 0 ? below(8) : ui::kPlain);
      case 11:
        return window.type(text());
      case 12:
        return window.resize(320 + below(900), 200 + below(700));
      case 13:
        return change_look(window);
      case 14:
        return edit(window);
      default:
        return open(window);
    }
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }
  template <typename T>
  const T& one_of(const std::vector<T>& all) {
    return all[random_() % all.size()];
  }

  ImVec2 anywhere() {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    return {static_cast<float>(below(static_cast<int>(size.x))),
            static_cast<float>(below(static_cast<int>(size.y)))};
  }

  void click_something(Harness& window) {
    std::vector<std::string> names;
    for (const auto& [name, tag] : window.app().tags().all()) {
      names.push_back(name);
    }
    if (!names.empty()) {
      window.click(one_of(names));
    }
  }

  void change_look(Harness& window) {
    app::Settings& settings = window.app().settings();
    settings.language = static_cast<ui::Language>(below(ui::kLanguageCount));
    settings.theme = static_cast<ui::ThemeId>(below(ui::kThemeCount));
    if (below(8) == 0) {  // a new scale makes a new font: slow
      settings.scale = 0.75F + 0.25F * static_cast<float>(below(10));
    }
    const auto& views = window.app().shell().all_views();
    window.app().shell().show_view(views[random_() % views.size()]->id());
    window.frames(2);
  }

  /// Legal and illegal values alike.
  void edit(Harness& window) {
    if (!window.session().has_scenario() || window.session().is_imported()) {
      return;
    }
    const std::vector<std::pair<std::string, std::vector<std::string>>> values{
        {"strategy.data.kind", {"dp", "ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"}},
        {"strategy.data.degree", {"0", "1", "2", "3", "4"}},
        {"strategy.pipeline.degree", {"1", "2", "4"}},
        {"strategy.tensor.degree", {"1", "2"}},
        {"training.accumulate", {"0", "1", "2", "4", "8"}},
        {"training.micro_batch", {"0", "1", "3", "1000000000000"}},
        {"training.seq_len", {"1", "64", "128", "9000000000000000000"}}};
    const auto& setting = one_of(values);
    const std::string value = one_of(setting.second);
    window.session().edit([&](Scenario& scenario) { set_key(scenario, setting.first, value); });
    window.frames(1 + below(3));
  }

  void open(Harness& window) {
    window.session().open(one_of(files_));
    if (below(2) == 0) {
      window.settle();
    }
    window.frames(1);
    if (window.shows("dialog.error")) {
      window.press(ui::Key::kEscape);
    }
  }

  ui::Key key() {
    static const std::vector<ui::Key> kKeys{
        ui::Key::kEscape, ui::Key::kEnter,     ui::Key::kTab,      ui::Key::kLeft,  ui::Key::kRight,
        ui::Key::kUp,     ui::Key::kDown,      ui::Key::kHome,     ui::Key::kEnd,   ui::Key::kSpace,
        ui::Key::kDelete, ui::Key::kBackspace, ui::Key::kF1,       ui::Key::kF6,    ui::Key::kW,
        ui::Key::kA,      ui::Key::kS,         ui::Key::kD,        ui::Key::kF,     ui::Key::kZ,
        ui::Key::kP,      ui::Key::kT,         ui::Key::kO,        ui::Key::kY,     ui::Key::kM,
        ui::Key::kE,      ui::Key::kX,         ui::Key::kPageDown, ui::Key::kDigit1};
    return one_of(kKeys);
  }

  std::string text() {
    static const std::vector<std::string> kTexts{"1",
                                                 "0",
                                                 "-7",
                                                 "64",
                                                 "99999999999999999999",
                                                 "nan",
                                                 "?",
                                                 "[",
                                                 "]",
                                                 "+",
                                                 "-",
                                                 "i",
                                                 "e",
                                                 "name.csv",
                                                 "\xE4\xB8\xAD",
                                                 "\xF0\x9F\x98\x80",
                                                 "a\"b"};
    return one_of(kTexts);
  }

  std::mt19937_64 random_;
  std::vector<std::string> files_;
};

/// What the monkey makes may be large: it plays with small ones.
void keep_small(Harness& window) {
  app::Session& session = window.session();
  const auto is_large = [&] {
    const Scenario scenario = resolved(session.scenario());
    return scenario.strategy.world_size() > kMostRanks || scenario.training.accumulate > 16 ||
           scenario.model.layers > 12;
  };
  if (session.has_scenario() && is_large()) {
    session.start(app::preset_scenario(*app::find_preset("laptop")));
  }
}

}  // namespace

TEST_CASE("a monkey at mouse, keyboard and files breaks nothing in 10,000 frames") {
  const std::uint64_t seed = test::test_seed();
  INFO("LOCKSTEP_TEST_SEED=" << seed);
  const test::TemporaryFolder folder;
  const std::vector<std::string> files = make_files(folder);
  const WorkingFolder working(folder.path());
  const std::set<std::string> outside = working.names_outside();
  {
    Harness window(900, 600);
    window.open("laptop");
    Monkey monkey(seed, files);
    while (ImGui::GetFrameCount() < std::max(kFrames, test::scaled(kFrames))) {
      monkey.act(window);
      keep_small(window);
    }
    window.app().settings().scale = 1;
    window.resize(1280, 800);
    for (int i = 0; i < 4; ++i) {
      window.press(ui::Key::kEscape);
    }
    window.settle();
    window.open("ddp");
    CHECK(window.session().error().empty());
    CHECK(window.shows("metric.mfu"));
    CHECK_FALSE(window.session().busy());
  }
  CHECK(working.names_outside() == outside);
}
