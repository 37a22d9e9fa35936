// Everything that can be pressed or typed into is reached without a mouse: the keyboard's focus is
// led through every panel and dialog as a person would, by arrows, F6, Tab and Enter, and whatever
// it did not come to is named.
#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <imgui_internal.h>

#include "tests/support/catch.h"
#include "tests/visualizer/support/harness.h"

using namespace lockstep;
using lockstep::test::Harness;

namespace {

using Names = std::set<std::string>;

/// Where arrows lead, and Space into lists of their own, found out by pressing them.
class Walker {
 public:
  /// `restart` leads the focus back to where the walk began.
  Walker(Harness& window, std::function<void()> restart)
      : window_(window), restart_(std::move(restart)) {}

  /// All items that are reached.
  const std::set<ImGuiID>& explore() {
    restart_();
    int restarts = 0;
    for (int i = 0; i < kMostPresses; ++i) {
      const std::optional<std::size_t> way = way_to_untried();
      if (way) {
        press(*way);
      } else if (is_known() ? restarts++ < 1 : restarts++ < kMostRestarts) {
        restart_();
      } else {
        break;
      }
    }
    return seen_;
  }

 private:
  static constexpr int kMostPresses = 3000;
  static constexpr int kMostRestarts = 40;
  static constexpr std::array<ui::Key, 5> kKeys{
      ui::Key::kDown, ui::Key::kRight, ui::Key::kUp, ui::Key::kLeft, ui::Key::kSpace};
  static constexpr std::size_t kEnters = 4;

  static bool is_list(ImGuiID item) {
    const ImVector<ImGuiWindow*>& windows = ImGui::GetCurrentContext()->Windows;
    return std::any_of(windows.begin(), windows.end(), [&](const ImGuiWindow* window) {
      return window->WasActive && window->ChildId == item;
    });
  }

  /// Every key was tried everywhere.
  bool is_known() const {
    return std::all_of(edges_.begin(), edges_.end(), [](const auto& node) {
      return node.first == 0 || std::all_of(node.second.begin(),
                                            node.second.begin() + (is_list(node.first) ? 5 : 4),
                                            [](const auto& to) { return to.has_value(); });
    });
  }

  void press(std::size_t key) {
    const ImGuiID from = ui::focused_item();
    seen_.insert(from);
    ui::feed_key(window_.io(), kKeys[key], true);
    window_.frames(1);
    ui::feed_key(window_.io(), kKeys[key], false);
    window_.frames(2);
    const ImGuiID to = ui::focused_item();
    seen_.insert(to);
    edges_[from][key] = to;
  }

  /// The first key of the shortest known way to an item where a key was not tried yet.
  std::optional<std::size_t> way_to_untried() {
    const ImGuiID here = ui::focused_item();
    if (here == 0 && !seen_.empty()) {
      return std::nullopt;  // in a picture whose arrows are the view's
    }
    std::map<ImGuiID, std::size_t> first_key{{here, 0}};
    std::deque<ImGuiID> queue{here};
    while (!queue.empty()) {
      const ImGuiID at = queue.front();
      queue.pop_front();
      for (std::size_t i = 0; i < kKeys.size(); ++i) {
        if (i == kEnters && !is_list(at)) {
          continue;  // Space would press it
        }
        const std::size_t first = at == here ? i : first_key[at];
        const std::optional<ImGuiID>& to = edges_[at][i];
        if (!to) {
          return first;
        }
        if (*to != 0 && first_key.count(*to) == 0) {
          first_key[*to] = first;
          queue.push_back(*to);
        }
      }
    }
    return std::nullopt;
  }

  Harness& window_;
  std::function<void()> restart_;
  std::map<ImGuiID, std::array<std::optional<ImGuiID>, kKeys.size()>> edges_;
  std::set<ImGuiID> seen_;
};

/// What can be pressed now, and its item.
std::map<std::string, ImGuiID> controls(Harness& window) {
  std::map<std::string, ImGuiID> result;
  for (const auto& [name, tag] : window.app().tags().all()) {
    if (tag.item != 0 && tag.enabled) {
      result[name] = tag.item;
    }
  }
  return result;
}

void reached(const std::map<std::string, ImGuiID>& controls,
             const std::set<ImGuiID>& seen,
             Names& names) {
  for (const auto& [name, item] : controls) {
    if (seen.count(item) != 0) {
      names.insert(name);
    }
  }
}

/// Splitters are moved by commands of the palette (panel.left.wider and so on), pictures of lanes
/// by W, A, S, D.
bool has_other_keys(const std::string& name) {
  return name.rfind("split.", 0) == 0 || name.ends_with(".body") || name.ends_with(".map");
}

/// Led through all panels, and with Tab through the controls of the view.
Names unreachable(Harness& window) {
  Names names;
  for (int panel = 0; panel < 6; ++panel) {
    window.press(ui::Key::kF6);
    const std::string name = ui::focused_window();
    const auto restart = [&] {
      window.press(ui::Key::kEscape);
      ImGui::SetWindowFocus(name.c_str());
      window.frames(1);
      window.press(name == "##centre" ? ui::Key::kTab : ui::Key::kDown);
    };
    reached(controls(window), Walker(window, restart).explore(), names);
    window.press(ui::Key::kEscape);
    window.press(ui::Key::kEscape);
    ImGui::SetWindowFocus(name.c_str());
    window.frames(1);
  }
  Names missing;
  for (const auto& [name, item] : controls(window)) {
    if (names.count(name) == 0 && !has_other_keys(name)) {
      missing.insert(name);
    }
  }
  return missing;
}

/// With the view's own keys: as many selections as there are things of this name, and those are
/// taken off what is missing.
void take_what_brackets_reach(Harness& window, const std::string& prefix, Names& missing) {
  Names things;
  for (const std::string& name : missing) {
    if (name.rfind(prefix, 0) == 0) {
      things.insert(name);
    }
  }
  ImGui::SetWindowFocus("##centre");
  window.frames(1);
  window.session().selection.reset();
  std::set<std::pair<std::int32_t, std::uint32_t>> selections;
  for (std::size_t i = 0; i < things.size() + 1; ++i) {
    window.type("]");
    if (window.session().selection) {
      selections.insert({window.session().selection->rank, window.session().selection->operation});
    }
  }
  if (selections.size() >= things.size()) {
    for (const std::string& name : things) {
      missing.erase(name);
    }
  }
}

/// Tags that a dialog brings.
std::map<std::string, ImGuiID> controls_of_dialog(Harness& window,
                                                  const std::map<std::string, ImGuiID>& before) {
  std::map<std::string, ImGuiID> result = controls(window);
  for (const auto& [name, item] : before) {
    result.erase(name);
  }
  return result;
}

Names unreachable_in_dialog(Harness& window, const std::map<std::string, ImGuiID>& before) {
  const std::map<std::string, ImGuiID> all = controls_of_dialog(window, before);
  REQUIRE_FALSE(all.empty());
  Names names;
  // Arrows leave a line of text, so there is no way back to be found.
  reached(all, Walker(window, [&] { window.press(ui::Key::kDown); }).explore(), names);
  Names missing;
  for (const auto& [name, item] : all) {
    if (names.count(name) == 0) {
      missing.insert(name);
    }
  }
  return missing;
}

}  // namespace

TEST_CASE("every control of every view is reached by F6, Tab and arrows") {
  Harness window(1280, 1400);
  std::vector<std::string> views;
  for (const auto& view : window.app().shell().all_views()) {
    views.emplace_back(view->id());
  }
  for (const std::string& view : views) {
    window.show(view);
    INFO(view);
    Names missing = unreachable(window);
    for (const char* prefix : {"bucket.", "unit.", "compare.row."}) {
      take_what_brackets_reach(window, prefix, missing);
    }
    CHECK(missing == Names{});
  }
}

TEST_CASE("every control of the pipeline's edit mode is reached by keys") {
  Harness window(1280, 1400);
  window.show("pipeline");
  window.press(ui::Key::kM);
  window.press(ui::Key::kM);
  REQUIRE(window.shows("pipeline.path"));
  CHECK(unreachable(window) == Names{});
}

TEST_CASE("every control of the start screen is reached by arrows") {
  Harness window(1280, 1400);
  window.frames(2);
  Names names;
  reached(controls(window), Walker(window, [&] { window.press(ui::Key::kDown); }).explore(), names);
  window.press(ui::Key::kF6);
  reached(controls(window), Walker(window, [&] { window.press(ui::Key::kDown); }).explore(), names);
  CHECK(names.count("preset.laptop") == 1);
  Names missing;
  for (const auto& [name, item] : controls(window)) {
    if (names.count(name) == 0) {
      missing.insert(name);
    }
  }
  CHECK(missing == Names{});
}

TEST_CASE("every control of every dialog is reached by arrows, and Esc closes it") {
  Harness window(1280, 1000);
  window.open("laptop");
  const std::map<std::string, ImGuiID> before = controls(window);
  const auto check = [&](const std::string& dialog, const std::string& tag) {
    INFO(dialog);
    CHECK(window.shows(tag));
    CHECK(unreachable_in_dialog(window, before) == Names{});
    window.press(ui::Key::kEscape);
    window.press(ui::Key::kEscape);
    CHECK_FALSE(window.shows(tag));
  };
  window.type("?");
  check("keys", "dialog.close");
  window.press(ui::Key::kF1);
  check("glossary", "dialog.close");
  window.press(ui::Key::kT);
  check("text", "text.copy");
  window.press(ui::Key::kO, ui::kControl);
  check("open", "open.path");
  window.open("/nowhere/at/all");
  check("error", "dialog.error");
}

TEST_CASE("arrows choose in the palette and Enter runs what is chosen") {
  Harness window;
  window.open("laptop");
  window.press(ui::Key::kP, ui::kControl | ui::kShift);
  window.type("theme.");
  window.press(ui::Key::kDown);
  window.press(ui::Key::kDown);
  window.press(ui::Key::kUp);
  window.press(ui::Key::kEnter);
  CHECK(window.app().settings().theme == ui::ThemeId::kLight);
}
