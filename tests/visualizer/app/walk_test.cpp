// Every view in every language, theme, scale and size: what can be pressed or read is where it can
// be seen or scrolled to, and nothing lies on anything else.
#include <algorithm>
#include <set>
#include <string>

#include "tests/support/catch.h"
#include "tests/visualizer/support/harness.h"
#include "visualizer/ui/state.h"

using namespace lockstep;
using lockstep::test::Harness;

namespace {

/// Rows of lists touch: each takes half of the gap between them.
bool overlap(const ui::Tag& a, const ui::Tag& b) {
  const float touch = 3 * ui::state().scale;
  const float width = std::min(a.seen_max.x, b.seen_max.x) - std::max(a.seen_min.x, b.seen_min.x);
  const float height = std::min(a.seen_max.y, b.seen_max.y) - std::max(a.seen_min.y, b.seen_min.y);
  return width > touch && height > touch;
}

/// A window as wide as 640 pixels, or three times as large letters, leaves tables less than a
/// figure needs: it is cut, and whole in the view's text.
bool is_tight() {
  return ImGui::GetIO().DisplaySize.x < 700 * ui::state().scale;
}

void check_place(const std::string& name, const ui::Tag& tag, std::set<std::string>& problems) {
  constexpr float kRounding = 1.5F;
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  const float left = std::max(0.0F, tag.seen_min.x) - kRounding;
  const float right = std::min(screen.x, tag.seen_max.x) + kRounding;
  const float top = std::max(0.0F, tag.seen_min.y) - kRounding;
  const float bottom = std::min(screen.y, tag.seen_max.y) + kRounding;
  const bool may_be_cut = tag.item == 0 && is_tight();
  if (!tag.scrolls_x && !may_be_cut && (tag.min.x < left || tag.max.x > right)) {
    problems.insert(name + " is cut off at its side");
  }
  if (!tag.scrolls_y && (tag.min.y < top || tag.max.y > bottom)) {
    problems.insert(name + " is cut off above or below");
  }
}

std::set<std::string> problems_of(Harness& window, const std::string& view) {
  std::set<std::string> problems;
  const auto& tags = window.app().tags().all();
  if (!window.shows("view." + view) || window.value("view." + view) != "current") {
    problems.insert("the view's title is not shown");
  }
  for (auto a = tags.begin(); a != tags.end(); ++a) {
    check_place(a->first, a->second, problems);
    for (auto b = std::next(a); b != tags.end(); ++b) {
      if (a->second.item != 0 && b->second.item != 0 && a->second.visible && b->second.visible &&
          overlap(a->second, b->second)) {
        problems.insert(a->first + " lies on " + b->first);
      }
    }
  }
  return problems;
}

struct Screen {
  int width;
  int height;
  float scale;
};

void walk(const Screen& screen) {
  app::Settings settings;
  settings.scale = screen.scale;
  Harness window(screen.width, screen.height, settings);
  std::vector<std::string> views;
  for (const auto& view : window.app().shell().all_views()) {
    views.emplace_back(view->id());
  }
  for (const std::string& view : views) {
    window.show(view);
    for (int language = 0; language < ui::kLanguageCount; ++language) {
      for (int theme = 0; theme < ui::kThemeCount; ++theme) {
        window.app().settings().language = static_cast<ui::Language>(language);
        window.app().settings().theme = static_cast<ui::ThemeId>(theme);
        window.frames(3);
        INFO(view << ", " << name_of(window.app().settings().language) << ", "
                  << name_of(window.app().settings().theme) << ", scale " << screen.scale << ", "
                  << screen.width << " x " << screen.height);
        CHECK(problems_of(window, view) == std::set<std::string>{});
      }
    }
  }
}

}  // namespace

TEST_CASE("every view is whole in every language and theme at scale 0.75") {
  walk({1280, 800, 0.75F});
}

TEST_CASE("every view is whole in every language and theme at scale 1") {
  walk({1280, 800, 1});
}

TEST_CASE("every view is whole in every language and theme at scale 2") {
  walk({1280, 800, 2});
}

TEST_CASE("every view is whole in every language and theme at scale 3") {
  walk({1280, 800, 3});
}

TEST_CASE("every view is whole in every language and theme in a small window") {
  walk({640, 400, 1});
}
