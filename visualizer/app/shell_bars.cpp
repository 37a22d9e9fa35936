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

namespace {

float button_width(const std::string& text) {
  return text.empty() ? 0
                      : ImGui::CalcTextSize(text.c_str()).x + 2 * ImGui::GetStyle().FramePadding.x +
                            ImGui::GetStyle().ItemSpacing.x;
}

/// Of the window, where the next item on the last one's line would be.
float next_x() {
  return ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x + ImGui::GetScrollX();
}

}  // namespace

// ---- Top bar ------------------------------------------------------------------------------------

Shell::LookTexts Shell::look_texts() const {
  constexpr std::array<S, ui::kThemeCount> kThemes{
      S::kThemeDark, S::kThemeLight, S::kThemeContrast};
  LookTexts texts;
  texts.language = ui::tr(settings_.language == ui::Language::kEnglish ? S::kChinese : S::kEnglish);
  texts.theme = ui::tr(kThemes[static_cast<std::size_t>(settings_.theme)]);
  texts.scale = fmt::format("{:.0f} %", 100 * static_cast<double>(settings_.scale));
  texts.palette = fmt::format("{}...", ui::tr(S::kPalette));
  texts.files = working() ? fmt::format("{}...", ui::tr(S::kExport)) : "";
  for (const std::string& text :
       {texts.language, texts.theme, texts.scale, texts.palette, texts.files, std::string("?")}) {
    texts.width += button_width(text);
  }
  return texts;
}

/// Where there is no room for names, numbers are what is left of them: their keys.
void Shell::view_tabs() {
  std::vector<std::string> titles;
  float width = look_texts().width;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    titles.push_back(fmt::format("{} {}", i + 1, ui::tr(views_[i]->title())));
    width += button_width(titles.back());
  }
  const bool narrow = next_x() + width + scaled(16) > ImGui::GetWindowWidth();
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const bool current = i == view_;
    ImGui::SameLine();
    if (current) {
      ImGui::PushStyleColor(ImGuiCol_Button, ui::theme().accent);
      ImGui::PushStyleColor(ImGuiCol_ButtonHovered, ui::theme().accent);
      ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().on_accent);
    }
    if (ImGui::Button(narrow ? std::to_string(i + 1).c_str() : titles[i].c_str())) {
      show_view_at(i);
    }
    if (narrow && ImGui::IsItemHovered()) {
      ImGui::SetTooltip("%s", ui::tr(views_[i]->title()));
    }
    if (current) {
      ImGui::PopStyleColor(3);
    }
    ui::tag(fmt::format("view.{}", views_[i]->id()), current ? "current" : "");
  }
}

void Shell::look_buttons() {
  const LookTexts texts = look_texts();
  ImGui::SameLine(
      std::max(next_x() + scaled(8), ImGui::GetWindowWidth() - texts.width - scaled(4)));
  const auto button = [](const std::string& text, const char* tag, auto&& act) {
    if (ImGui::Button((text + "##" + tag).c_str())) {
      act();
    }
    ui::tag(tag, text);
    ImGui::SameLine();
  };
  if (!texts.files.empty()) {
    button(texts.files, "top.export", [&] { show_export(); });
  }
  button(texts.palette, "top.palette", [&] { dialogs_.show(Dialog::kPalette); });
  button("?", "top.keys", [&] { dialogs_.show(Dialog::kKeys); });
  button(texts.theme, "top.theme", [&] {
    settings_.theme =
        static_cast<ui::ThemeId>((static_cast<int>(settings_.theme) + 1) % ui::kThemeCount);
  });
  button(texts.scale, "top.scale", [&] {
    settings_.scale = settings_.scale >= 2 ? 0.75F : settings_.scale + 0.25F;
  });
  button(texts.language, "top.language", [&] {
    settings_.language = settings_.language == ui::Language::kEnglish ? ui::Language::kChinese
                                                                      : ui::Language::kEnglish;
  });
}

void Shell::top_bar(const Rect& place) {
  // A large scale may need more than the window is wide: the wheel and the keyboard scroll.
  begin_panel(kTop, place, ImGuiWindowFlags_HorizontalScrollbar | ImGuiWindowFlags_NoScrollbar);
  if (ImGui::IsWindowHovered() && ImGui::GetIO().MouseWheel != 0) {
    ImGui::SetScrollX(ImGui::GetScrollX() - ImGui::GetIO().MouseWheel * scaled(60));
  }
  if (ImGui::Button(ui::tr(S::kHome))) {
    session_.go_home();
  }
  ui::tag("top.home");
  if (working()) {
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

// ---- The line at the bottom ---------------------------------------------------------------------

void Shell::status_line(const Rect& place) {
  if (!desk_.has_status()) {
    return;
  }
  begin_panel(kStatus, place, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  const bool cancelled = session_.cancelled() && !desk_.can_cancel();
  const char* const word = ui::tr(cancelled ? S::kSimulateAgain : S::kCancel);
  const bool has_button = cancelled || desk_.can_cancel();
  const float button = ImGui::CalcTextSize(word).x + 2 * ImGui::GetStyle().FramePadding.x;
  const float room = ImGui::GetContentRegionAvail().x - (has_button ? button + scaled(12) : 0);
  ImGui::AlignTextToFramePadding();
  const std::string shown = ui::elided(*ui::state().fonts.text, desk_.status(), room);
  ImGui::TextUnformatted(shown.c_str());
  ui::tag("status", desk_.status());
  if (has_button) {
    ImGui::SameLine(0, scaled(12));
    if (ImGui::Button(word)) {
      cancelled ? session_.again() : desk_.cancel();
    }
    ui::tag(cancelled ? "status.again" : "status.cancel");
  }
  ImGui::End();
}

}  // namespace lockstep::app
