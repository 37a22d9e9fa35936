#include "visualizer/app/shell.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "visualizer/app/metric_cards.h"
#include "visualizer/app/start_screen.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"

namespace lockstep::app {
namespace {

using ui::Rect;
using ui::S;
using ui::scaled;

constexpr const char* kTop = "##top";
constexpr const char* kLeft = "##left";
constexpr const char* kCentre = "##centre";
constexpr const char* kBottom = "##bottom";
constexpr const char* kRight = "##right";
constexpr std::array<const char*, 5> kPanels{kTop, kLeft, kCentre, kBottom, kRight};
constexpr float kGap = 4;

}  // namespace

Shell::Shell(Session& session, Settings& settings)
    : session_(session), settings_(settings), views_(views::make_views()) {
  dialogs_.on_open = [this](const std::string& path) {
    if (opens_baseline_) {
      session_.open_baseline(path);
    } else {
      session_.open(path);
    }
  };
  session_.on_record = [this] { show_view("steps"); };
}

void Shell::show_open(bool baseline) {
  opens_baseline_ = baseline;
  dialogs_.show(Dialog::kOpen);
}

bool Shell::show_view(std::string_view id) {
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (views_[i]->id() == id) {
      view_ = i;
      return true;
    }
  }
  return false;
}

Shell::Places Shell::places() const {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const float gap = std::floor(scaled(kGap));
  const float top = std::floor(ImGui::GetFrameHeight() + scaled(14));
  const float left = std::floor(size.x * settings_.left);
  const float right = std::floor(size.x * (1 - settings_.right));
  const float bottom = std::floor(size.y * (1 - settings_.bottom));
  Places at;
  at.top = {ImVec2(0, 0), ImVec2(size.x, top)};
  at.left = {ImVec2(0, top + gap), ImVec2(left, size.y)};
  at.centre = {ImVec2(left + gap, top + gap), ImVec2(right - gap, bottom - gap)};
  at.bottom = {ImVec2(left + gap, bottom), ImVec2(right - gap, size.y)};
  at.right = {ImVec2(right, top + gap), ImVec2(size.x, size.y)};
  return at;
}

bool Shell::begin_panel(const char* name, const Rect& place, int flags) const {
  ImGui::SetNextWindowPos(place.min);
  ImGui::SetNextWindowSize(ImVec2(std::max(1.0F, place.width()), std::max(1.0F, place.height())));
  return ImGui::Begin(name,
                      nullptr,
                      ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                          ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                          ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoCollapse |
                          flags);
}

// ---- Top bar ------------------------------------------------------------------------------------

void Shell::view_tabs() {
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const bool current = i == view_;
    ImGui::SameLine();
    if (current) {
      ImGui::PushStyleColor(ImGuiCol_Button, ui::theme().accent);
      ImGui::PushStyleColor(ImGuiCol_ButtonHovered, ui::theme().accent);
      ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().on_accent);
    }
    const std::string title = fmt::format("{} {}", i + 1, ui::tr(views_[i]->title()));
    if (ImGui::Button(title.c_str())) {
      view_ = i;
    }
    if (current) {
      ImGui::PopStyleColor(3);
    }
    ui::tag(fmt::format("view.{}", views_[i]->id()), current ? "current" : "");
  }
}

void Shell::look_buttons() {
  const bool english = settings_.language == ui::Language::kEnglish;
  const std::string language = ui::tr(english ? S::kChinese : S::kEnglish);
  constexpr std::array<S, ui::kThemeCount> kThemes{
      S::kThemeDark, S::kThemeLight, S::kThemeContrast};
  const std::string theme = ui::tr(kThemes[static_cast<std::size_t>(settings_.theme)]);
  const std::string scale = fmt::format("{:.0f} %", 100 * static_cast<double>(settings_.scale));
  const std::string palette = fmt::format("{}...", ui::tr(S::kPalette));
  float width = 0;
  for (const std::string& text : {language, theme, scale, palette, std::string("?")}) {
    width += ImGui::CalcTextSize(text.c_str()).x + 2 * ImGui::GetStyle().FramePadding.x +
             ImGui::GetStyle().ItemSpacing.x;
  }
  ImGui::SameLine(
      std::max(ImGui::GetItemRectMax().x + scaled(8), ImGui::GetWindowWidth() - width - scaled(4)));
  const auto button = [](const std::string& text, const char* tag, auto&& act) {
    if (ImGui::Button((text + "##" + tag).c_str())) {
      act();
    }
    ui::tag(tag, text);
    ImGui::SameLine();
  };
  button(palette, "top.palette", [&] { dialogs_.show(Dialog::kPalette); });
  button("?", "top.keys", [&] { dialogs_.show(Dialog::kKeys); });
  button(theme, "top.theme", [&] {
    settings_.theme =
        static_cast<ui::ThemeId>((static_cast<int>(settings_.theme) + 1) % ui::kThemeCount);
  });
  button(scale, "top.scale", [&] {
    settings_.scale = settings_.scale >= 2 ? 0.75F : settings_.scale + 0.25F;
  });
  button(language, "top.language", [&] {
    settings_.language = english ? ui::Language::kChinese : ui::Language::kEnglish;
  });
}

void Shell::top_bar(const Rect& place) {
  begin_panel(kTop, place, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  if (ImGui::Button(ui::tr(S::kHome))) {
    session_.close();
  }
  ui::tag("top.home");
  if (session_.has_scenario()) {
    const auto step = [](S title, const char* tag, bool possible, auto&& act) {
      ImGui::SameLine();
      ImGui::BeginDisabled(!possible);
      ImGui::PushStyleColor(ImGuiCol_Text, possible ? ui::theme().text : ui::theme().disabled);
      if (ImGui::Button(ui::tr(title))) {
        act();
      }
      ImGui::PopStyleColor();
      ImGui::EndDisabled();
      ui::tag(tag, "", possible);
    };
    step(S::kUndo, "top.undo", session_.can_undo(), [&] { session_.undo(); });
    step(S::kRedo, "top.redo", session_.can_redo(), [&] { session_.redo(); });
    ImGui::SameLine(0, scaled(18));
    ImGui::Dummy(ImVec2(0, 0));
    view_tabs();
  }
  look_buttons();
  ImGui::End();
}

// ---- Panels -------------------------------------------------------------------------------------

bool Shell::can_draw_view() const {
  return session_.document() != nullptr && !(session_.is_imported() && views_[view_]->needs_plan());
}

void Shell::centre(const Rect& place) {
  // Arrows belong to the view: F6 leaves it.
  begin_panel(kCentre, place, ImGuiWindowFlags_NoNavInputs | ImGuiWindowFlags_NoScrollWithMouse);
  views::View& view = *views_[view_];
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
  ImGui::TextWrapped("%s", ui::tr(view.about()));
  ImGui::PopStyleColor();
  if (!can_draw_view()) {
    const S text = session_.is_imported()        ? S::kEmptyImported
                   : session_.problems().empty() ? S::kWorking
                                                 : S::kEmptyView;
    ImGui::TextWrapped("%s", ui::tr(text));
    ui::tag("view.empty", ui::tr(text));
  } else {
    const bool focused = std::string_view(ui::focused_window()) == kCentre;
    const bool hovered = ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows |
                                                ImGuiHoveredFlags_AllowWhenBlockedByActiveItem) &&
                         !ImGui::GetIO().NavVisible;
    const bool has_keys =
        dialogs_.current() == Dialog::kNone && !ui::text_is_edited() && (focused || hovered);
    views::ViewContext context{session_, session_.document()};
    view.draw(context, has_keys);
  }
  ImGui::End();
}

void Shell::bottom(const Rect& place) {
  begin_panel(kBottom, place);
  if (can_draw_view()) {
    views::ViewContext context{session_, session_.document()};
    views_[view_]->draw_details(context);
  }
  ImGui::End();
}

void Shell::splitter(const char* id, const Rect& place, bool vertical, float& share, float sign) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, ImVec2(1, 1));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ui::theme().background);
  begin_panel(
      id,
      place,
      ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoFocusOnAppearing);
  ImGui::InvisibleButton("##grip",
                         ImVec2(std::max(1.0F, place.width()), std::max(1.0F, place.height())));
  ui::tag(id + 2);
  if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
    ImGui::SetMouseCursor(vertical ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_ResizeNS);
    ImGui::GetWindowDrawList()->AddRectFilled(place.min, place.max, ui::theme().accent);
  }
  if (ImGui::IsItemActive()) {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    const ImVec2 moved = ImGui::GetIO().MouseDelta;
    const float part = vertical ? moved.x / size.x : moved.y / size.y;
    share = std::clamp(share + sign * part, 0.08F, 0.5F);
  }
  ImGui::End();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(2);
}

void Shell::splitters(const Places& at) {
  const float gap = std::floor(scaled(kGap));
  splitter("##split.left",
           {ImVec2(at.left.max.x, at.left.min.y), ImVec2(at.left.max.x + gap, at.left.max.y)},
           true,
           settings_.left,
           1);
  splitter("##split.right",
           {ImVec2(at.right.min.x - gap, at.right.min.y), ImVec2(at.right.min.x, at.right.max.y)},
           true,
           settings_.right,
           -1);
  splitter("##split.bottom",
           {ImVec2(at.centre.min.x, at.centre.max.y), ImVec2(at.centre.max.x, at.bottom.min.y)},
           false,
           settings_.bottom,
           -1);
}

void Shell::working_screen(const Places& at) {
  begin_panel(kLeft, at.left);
  if (session_.is_imported()) {
    imported_panel_.draw_facts(session_.document());
  } else {
    scenario_panel_.draw(session_);
  }
  ImGui::End();
  begin_panel(kRight, at.right);
  if (session_.is_imported()) {
    imported_panel_.draw_figures(session_.document());
  } else {
    draw_metric_cards(session_);
  }
  ImGui::End();
  bottom(at.bottom);
  centre(at.centre);
  splitters(at);
  if (!was_working_) {
    ImGui::SetWindowFocus(kCentre);
  }
}

void Shell::draw() {
  session_.poll();
  session_.playing = false;  // until the view that is shown says so
  if (!session_.error().empty()) {
    dialogs_.show_error(session_.error());
    session_.dismiss_error();
  }
  if (std::exchange(session_.asks_for_baseline, false)) {
    show_open(true);
  }
  const std::vector<Command> all = commands();
  run_keys(all);
  const Places at = places();
  ImGui::GetBackgroundDrawList()->AddRectFilled(
      ImVec2(0, 0), ImGui::GetIO().DisplaySize, ui::theme().background);
  top_bar(at.top);
  const bool working = session_.has_scenario();
  if (working) {
    working_screen(at);
  } else {
    const float gap = std::floor(scaled(kGap));
    begin_panel("##home", {ImVec2(0, at.top.max.y + gap), ImGui::GetIO().DisplaySize});
    draw_start_screen(
        session_,
        settings_,
        [this](const std::string& path) { session_.open(path); },
        [this] { show_open(false); });
    ImGui::End();
  }
  was_working_ = working;
  dialogs_.draw(all, working ? views_[view_]->keys() : std::vector<views::KeyHelp>{});
}

// ---- Keys ---------------------------------------------------------------------------------------

void Shell::show_text() {
  if (!can_draw_view()) {
    return;
  }
  const views::ViewContext context{session_, session_.document()};
  views::View& view = *views_[view_];
  dialogs_.show_text(ui::trf(S::kTextOf, ui::tr(view.title())), view.text(context));
}

void Shell::add_session_commands(std::vector<Command>& commands) {
  using ui::Key;
  const auto control = [](Key key) { return [key] { return ui::chord(key, ui::kControl, true); }; };
  const auto plain = [](Key key) {
    return [key] { return !ui::text_is_edited() && ui::chord(key, ui::kPlain); };
  };
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
                      session_.has_scenario() && !session_.is_imported()});
  commands.push_back({"compare",
                      ui::tr(S::kCompare),
                      "C",
                      [this] { show_view("compare"); },
                      plain(Key::kC),
                      session_.has_scenario()});
  commands.push_back({"home", ui::tr(S::kHome), "", [this] { session_.close(); }, nullptr});
  commands.push_back({"undo",
                      ui::tr(S::kUndo),
                      "Ctrl+Z",
                      [this] { session_.undo(); },
                      control(Key::kZ),
                      session_.can_undo()});
  commands.push_back({"redo",
                      ui::tr(S::kRedo),
                      "Ctrl+Y",
                      [this] { session_.redo(); },
                      control(Key::kY),
                      session_.can_redo()});
  const bool open = session_.document() != nullptr;
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
                        [this, i] { view_ = i; },
                        plain(ui::digit_key(std::min(digit, 9))),
                        session_.has_scenario()});
  }
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
    commands.push_back({id, ui::tr(title), "", std::move(run), nullptr, session_.has_scenario()});
  };
  add("panel.left.wider", S::kWiderLeft, resize(settings_.left, 0.03F));
  add("panel.left.narrower", S::kNarrowerLeft, resize(settings_.left, -0.03F));
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
                        session_.has_scenario()});
  }
}

std::vector<Command> Shell::commands() {
  std::vector<Command> all;
  add_session_commands(all);
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
  all.push_back({"quit", ui::tr(S::kQuit), "", [this] { quit_ = true; }, nullptr});
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
  if (!session_.has_scenario()) {
    return;
  }
  const std::string_view now = ui::focused_window();
  const auto at = std::find(kPanels.begin(), kPanels.end(), now);
  const auto index = static_cast<std::size_t>(at - kPanels.begin());
  const bool back = (ui::modifiers_held() & ui::kShift) != 0;
  const std::size_t next =
      at == kPanels.end() ? 2 : (index + (back ? kPanels.size() - 1 : 1)) % kPanels.size();
  ImGui::SetWindowFocus(kPanels[next]);
}

void Shell::escape() {
  if (session_.selection || session_.area) {
    session_.selection.reset();
    session_.area.reset();
  }
}

}  // namespace lockstep::app
