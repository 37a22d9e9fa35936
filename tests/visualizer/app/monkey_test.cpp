// A monkey: random clicks, keys and texts. Nothing may throw, and the window must still answer.
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/scale.h"
#include "tests/visualizer/support/harness.h"
#include "visualizer/app/presets.h"

using namespace lockstep;
using lockstep::test::Harness;

namespace {

/// Frames of a usual run; --long multiplies it.
constexpr int kActions = 150;

class Monkey {
 public:
  explicit Monkey(std::uint64_t seed) : random_(seed) {}

  void act(Harness& window) {
    switch (below(8)) {
      case 0:
      case 1:
        click_something(window);
        break;
      case 2:
        window.click_at(anywhere(window));
        break;
      case 3:
        window.drag(anywhere(window), anywhere(window));
        break;
      case 4:
        window.wheel(anywhere(window), static_cast<float>(below(9)) - 4);
        break;
      case 5:
        window.press(key(), below(4) == 0 ? below(8) : ui::kPlain);
        break;
      case 6:
        window.type(text());
        break;
      default:
        window.resize(320 + below(900), 200 + below(700));
        window.frames(1);
        break;
    }
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }

  ImVec2 anywhere(Harness& window) {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    static_cast<void>(window);
    return {static_cast<float>(below(static_cast<int>(size.x))),
            static_cast<float>(below(static_cast<int>(size.y)))};
  }

  void click_something(Harness& window) {
    std::vector<std::string> names;
    for (const auto& [name, tag] : window.app().tags().all()) {
      names.push_back(name);
    }
    const std::string name = names.empty() ? "" : names[random_() % names.size()];
    if (!name.empty()) {
      window.click(name);
    }
  }

  ui::Key key() {
    static const std::vector<ui::Key> kKeys{
        ui::Key::kEscape, ui::Key::kEnter, ui::Key::kTab,  ui::Key::kLeft,    ui::Key::kRight,
        ui::Key::kUp,     ui::Key::kDown,  ui::Key::kHome, ui::Key::kEnd,     ui::Key::kSpace,
        ui::Key::kDelete, ui::Key::kF1,    ui::Key::kF6,   ui::Key::kW,       ui::Key::kA,
        ui::Key::kS,      ui::Key::kD,     ui::Key::kF,    ui::Key::kZ,       ui::Key::kP,
        ui::Key::kT,      ui::Key::kO,     ui::Key::kY,    ui::Key::kPageDown};
    return kKeys[random_() % kKeys.size()];
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
                                                 "\xE4\xB8\xAD",
                                                 "a\"b"};
    return kTexts[random_() % kTexts.size()];
  }

  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("a monkey at mouse and keyboard breaks nothing") {
  const std::uint64_t seed = test::test_seed();
  INFO("LOCKSTEP_TEST_SEED=" << seed);
  Harness window(900, 600);
  window.open("laptop");
  Monkey monkey(seed);
  for (int i = 0; i < test::scaled(kActions); ++i) {
    monkey.act(window);
    // Scenarios that the monkey makes may be large: it plays with small ones.
    if (window.session().has_scenario() &&
        resolved(window.session().scenario()).strategy.world_size() > 64) {
      window.session().undo();
    }
  }
  for (int i = 0; i < 4; ++i) {
    window.press(ui::Key::kEscape);
  }
  window.open("ddp");
  CHECK(window.session().error().empty());
  CHECK(window.shows("metric.mfu"));
}
