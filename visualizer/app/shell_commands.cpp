#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "visualizer/app/shell.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"

namespace lockstep::app {

using ui::Rect;
using ui::S;
using ui::scaled;

// ---- Keys ---------------------------------------------------------------------------------------

void Shell::show_text() {
  if (!can_draw_view()) {
    return;
  }
  const views::ViewContext context{session_, session_.document()};
  views::View& view = *views_[view_];
  dialogs_.show_text(ui::trf(S::kTextOf, ui::tr(view.title())), view.text(context));
}

namespace {

std::function<bool()> control(ui::Key key) {
  return [key] { return ui::chord(key, ui::kControl, true); };
}

std::function<bool()> plain(ui::Key key) {
  return [key] { return !ui::text_is_edited() && ui::chord(key, ui::kPlain); };
}

}  // namespace

void Shell::add_session_commands(std::vector<Command>& commands) {
  using ui::Key;
  commands.push_back({"open",
                      fmt::format("{}...", ui::tr(S::kOpenTitle)),
                      "Ctrl+O",
                      [this] { show_open(false); },
                      control(Key::kO)});
  commands.push_back({"open.baseline",
                      fmt::format("{}...", ui::tr(S::kCompareOpen)),
                      "",
                      [this] { show_open(true); },
                      nullptr,
                      working() && !session_.is_imported()});
  commands.push_back({"compare",
                      ui::tr(S::kCompare),
                      "C",
                      [this] { show_view("compare"); },
                      plain(Key::kC),
                      working()});
  commands.push_back(
      {"home", ui::tr(S::kHome), "", [this] { session_.go_home(); }, nullptr, working()});
  commands.push_back({"back",
                      ui::trf(S::kBackTo, session_.name()),
                      "",
                      [this] { session_.leave_home(); },
                      nullptr,
                      !working() && session_.has_scenario()});
  commands.push_back({"undo",
                      ui::tr(S::kUndo),
                      "Ctrl+Z",
                      [this] { session_.undo(); },
                      control(Key::kZ),
                      working() && session_.can_undo()});
  commands.push_back({"redo",
                      ui::tr(S::kRedo),
                      "Ctrl+Y",
                      [this] { session_.redo(); },
                      control(Key::kY),
                      working() && session_.can_redo()});
  const bool open = working() && session_.document() != nullptr;
  commands.push_back({"pin",
                      ui::tr(S::kPin),
                      "P",
                      [this] { session_.pin(); },
                      plain(Key::kP),
                      open && !session_.is_imported()});
  commands.push_back({"unpin",
                      ui::tr(S::kUnpin),
                      "",
                      [this] { session_.unpin(); },
                      nullptr,
                      session_.baseline() != nullptr});
  commands.push_back(
      {"text", ui::tr(S::kShowAsText), "T", [this] { show_text(); }, plain(Key::kT), open});
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const int digit = static_cast<int>(i) + 1;
    commands.push_back({fmt::format("view.{}", views_[i]->id()),
                        ui::tr(views_[i]->title()),
                        std::to_string(digit),
                        [this, i] { show_view_at(i); },
                        plain(ui::digit_key(std::min(digit, 9))),
                        working()});
  }
}

void Shell::add_file_commands(std::vector<Command>& commands) {
  using ui::Key;
  const bool scenario = working() && !session_.is_imported();
  commands.push_back(
      {"save", ui::tr(S::kSave), "Ctrl+S", [this] { desk_.save(); }, control(Key::kS), scenario});
  commands.push_back({"save.as",
                      ui::tr(S::kSaveAs),
                      "Ctrl+Shift+S",
                      [this] { desk_.save_as(); },
                      [] { return ui::chord(Key::kS, ui::kControl | ui::kShift); },
                      scenario});
  commands.push_back({"export",
                      fmt::format("{}...", ui::tr(S::kExport)),
                      "E",
                      [this] { show_export(); },
                      plain(Key::kE),
                      working()});
  commands.push_back({"cancel",
                      ui::tr(S::kCancelWork),
                      "Esc",
                      [this] { desk_.cancel(); },
                      nullptr,
                      session_.seconds() > 0 || desk_.can_cancel()});
  commands.push_back({"again",
                      ui::tr(S::kSimulateAgain),
                      "Ctrl+Enter",
                      [this] { session_.again(); },
                      control(Key::kEnter),
                      scenario});
}

void Shell::add_look_commands(std::vector<Command>& commands) {
  constexpr std::array<S, ui::kThemeCount> kThemes{
      S::kThemeDark, S::kThemeLight, S::kThemeContrast};
  for (int i = 0; i < ui::kThemeCount; ++i) {
    const auto id = static_cast<ui::ThemeId>(i);
    commands.push_back(
        {fmt::format("theme.{}", name_of(id)),
         fmt::format("{}: {}", ui::tr(S::kTheme), ui::tr(kThemes[static_cast<std::size_t>(i)])),
         "",
         [this, id] { settings_.theme = id; },
         nullptr});
  }
  for (int i = 0; i < ui::kLanguageCount; ++i) {
    const auto language = static_cast<ui::Language>(i);
    const S name = language == ui::Language::kEnglish ? S::kEnglish : S::kChinese;
    commands.push_back({fmt::format("language.{}", name_of(language)),
                        fmt::format("{}: {}", ui::tr(S::kLanguage), ui::tr(name)),
                        "",
                        [this, language] { settings_.language = language; },
                        nullptr});
  }
  const auto zoom = [this](float by) {
    return
        [this, by] { settings_.scale = std::clamp(settings_.scale + by, kLeastScale, kMostScale); };
  };
  commands.push_back(
      {"scale.larger", ui::tr(S::kScaleUp), "+", zoom(0.25F), [] { return ui::typed('+'); }});
  commands.push_back(
      {"scale.smaller", ui::tr(S::kScaleDown), "-", zoom(-0.25F), [] { return ui::typed('-'); }});
}

void Shell::add_panel_commands(std::vector<Command>& commands) {
  const auto resize = [](float& share, float by) {
    return [&share, by] { share = std::clamp(share + by, 0.08F, 0.5F); };
  };
  const auto add = [&](const char* id, S title, std::function<void()> run) {
    commands.push_back({id, ui::tr(title), "", std::move(run), nullptr, working()});
  };
  add("panel.left.wider", S::kWiderLeft, resize(settings_.left, 0.03F));
  add("panel.left.narrower", S::kNarrowerLeft, resize(settings_.left, -0.03F));
  add("panel.right.wider", S::kWiderRight, resize(settings_.right, 0.03F));
  add("panel.right.narrower", S::kNarrowerRight, resize(settings_.right, -0.03F));
  add("panel.bottom.taller", S::kTallerBottom, resize(settings_.bottom, 0.03F));
  add("panel.bottom.lower", S::kLowerBottom, resize(settings_.bottom, -0.03F));
}

void Shell::add_field_commands(std::vector<Command>& commands) const {
  for (const auto& [key, title] : ScenarioPanel::fields()) {
    const std::string tag = key;
    commands.push_back({fmt::format("go.{}", key),
                        ui::trf(S::kGoTo, ui::tr(title)),
                        "",
                        [tag] { ui::state().tags.want_focus(tag); },
                        nullptr,
                        working()});
  }
}

std::vector<Command> Shell::commands() {
  std::vector<Command> all;
  add_session_commands(all);
  add_file_commands(all);
  add_look_commands(all);
  add_panel_commands(all);
  add_field_commands(all);
  all.push_back({"palette",
                 ui::tr(S::kPalette),
                 "Ctrl+Shift+P",
                 [this] { dialogs_.show(Dialog::kPalette); },
                 [] { return ui::chord(ui::Key::kP, ui::kControl | ui::kShift); }});
  all.push_back({"keys",
                 ui::tr(S::kKeys),
                 "?",
                 [this] { dialogs_.show(Dialog::kKeys); },
                 [] { return ui::typed('?'); }});
  all.push_back({"glossary",
                 ui::tr(S::kGlossary),
                 "F1",
                 [this] { dialogs_.show(Dialog::kGlossary); },
                 [] { return ui::chord(ui::Key::kF1, ui::kPlain); }});
  all.push_back({"quit", ui::tr(S::kQuit), "", [this] { quit(); }, nullptr});
  return all;
}

void Shell::run_keys(const std::vector<Command>& commands) {
  const bool popup = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup);
  if (dialogs_.current() != Dialog::kNone || popup) {
    return;
  }
  for (const Command& command : commands) {
    if (command.enabled && command.hit && command.hit()) {
      command.run();
      return;
    }
  }
  if (ui::pressed(ui::Key::kF6)) {
    cycle_panels();
  }
  if (ui::pressed(ui::Key::kEscape, false) && !ui::text_is_edited()) {
    escape();
  }
}

void Shell::cycle_panels() {
  const std::string_view now = ui::focused_window();
  if (!working()) {
    ImGui::SetWindowFocus(now == kHome ? kTop : kHome);
    return;
  }
  const auto at = std::find(kPanels.begin(), kPanels.end(), now);
  const auto index = static_cast<std::size_t>(at - kPanels.begin());
  const bool back = (ui::modifiers_held() & ui::kShift) != 0;
  const std::size_t count = kPanels.size() - (desk_.has_status() ? 0 : 1);
  const std::size_t next = index >= count ? 2 : (index + (back ? count - 1 : 1)) % count;
  ImGui::SetWindowFocus(kPanels[next]);
}

void Shell::escape() {
  if (std::exchange(walks_, false)) {
    return;
  }
  if (!working() && session_.has_scenario()) {
    session_.leave_home();
  } else if (desk_.escape() || (can_draw_view() && views_[view_]->escape())) {
    return;
  } else if (session_.selection || session_.area) {
    session_.selection.reset();
    session_.area.reset();
  }
}

}  // namespace lockstep::app
