#include "visualizer/app/start_screen.h"

#include <algorithm>

#include <fmt/format.h>
#include <imgui.h>

#include "visualizer/app/presets.h"
#include "visualizer/ui/draw.h"
#include "visualizer/ui/state.h"

namespace lockstep::app {
namespace {

using ui::S;

void heading(S text) {
  ImGui::Dummy(ImVec2(1, ui::scaled(10)));
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().accent);
  ImGui::TextUnformatted(ui::tr(text));
  ImGui::PopStyleColor();
}

void muted(const char* text) {
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
  ImGui::TextWrapped("%s", text);
  ImGui::PopStyleColor();
}

bool preset_button(const Preset& preset, const ImVec2& size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ui::focus_if_wanted(fmt::format("preset.{}", preset.id));
  const bool hit = ImGui::Button(fmt::format("##{}", preset.id).c_str(), size);
  ui::tag(fmt::format("preset.{}", preset.id), ui::tr(preset.title));
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImFont* font = ui::state().fonts.text;
  const float pad = ui::scaled(10);
  const float line = font->FontSize * 1.35F;
  const float room = size.x - 2 * pad;
  const float top = at.y + (size.y - line - font->FontSize) / 2;
  ui::text_at(list,
              font,
              ImVec2(at.x + pad, top),
              ui::theme().text,
              ui::elided(*font, ui::tr(preset.title), room));
  ui::text_at(list,
              font,
              ImVec2(at.x + pad, top + line),
              ui::theme().muted,
              ui::elided(*font, ui::tr(preset.note), room));
  return hit;
}

void examples(const std::function<void(const std::string&)>& open) {
  heading(S::kExamples);
  const float room = ImGui::GetContentRegionAvail().x;
  const int columns = room > ui::scaled(620) ? 2 : 1;
  const float gap = ImGui::GetStyle().ItemSpacing.x;
  const ImVec2 size((room - gap * static_cast<float>(columns - 1)) / static_cast<float>(columns),
                    ui::scaled(54));
  int column = 0;
  for (const Preset& preset : presets()) {
    if (column > 0) {
      ImGui::SameLine();
    }
    column = (column + 1) % columns;
    if (preset_button(preset, size)) {
      open(std::string(preset.id));
    }
  }
}

void recent(const Settings& settings, const std::function<void(const std::string&)>& open) {
  heading(S::kRecent);
  if (settings.recent.empty()) {
    muted(ui::tr(S::kNoRecent));
  }
  for (std::size_t i = 0; i < settings.recent.size(); ++i) {
    if (ImGui::Selectable(fmt::format("{}##{}", settings.recent[i], i).c_str())) {
      open(settings.recent[i]);
    }
    ui::tag(fmt::format("recent.{}", i), settings.recent[i]);
  }
}

}  // namespace

void draw_start_screen(const Session& session,
                       const Settings& settings,
                       const std::function<void(const std::string&)>& open,
                       const std::function<void()>& browse,
                       const std::function<void()>& back) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float width = std::min(room.x, ui::scaled(820));
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + (room.x - width) / 2);
  ImGui::BeginChild("##start", ImVec2(width, 0));
  ImGui::Dummy(ImVec2(1, ui::scaled(18)));
  ImGui::PushFont(ui::state().fonts.large);
  ImGui::TextWrapped("%s", ui::tr(S::kStartTitle));
  ImGui::PopFont();
  muted(ui::tr(S::kStartIntro));
  if (session.has_scenario()) {
    ImGui::Dummy(ImVec2(1, ui::scaled(8)));
    if (ImGui::Button(fmt::format("{}##back", ui::trf(S::kBackTo, session.name())).c_str())) {
      back();
    }
    ui::tag("start.back", session.name());
  }
  examples(open);
  ImGui::Dummy(ImVec2(1, ui::scaled(8)));
  if (ImGui::Button(fmt::format("{}...##browse", ui::tr(S::kOpenTitle)).c_str())) {
    browse();
  }
  ui::tag("start.open");
  muted(ui::tr(S::kDropHint));
  recent(settings, open);
  if (!session.opening().empty()) {
    ImGui::TextWrapped("%s", ui::trf(S::kOpening, session.opening()).c_str());
  }
  ImGui::EndChild();
}

}  // namespace lockstep::app
