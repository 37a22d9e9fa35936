#include "visualizer/app/path_prompt.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"

namespace lockstep::app {

using ui::S;

bool is_taken(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return !std::filesystem::is_empty(path, error);
  }
  return std::filesystem::exists(path, error);
}

void PathPrompt::start(std::string path) {
  path_ = std::move(path);
  asked_.clear();
  ++started_;
  appearing_ = true;
}

bool PathPrompt::draw(const std::string& tag, const char* action) {
  const bool ask = !asked_.empty() && asked_ == path_;
  const char* const word = ask ? ui::tr(S::kReplace) : action;
  const float width = ImGui::CalcTextSize(word).x + 2 * ImGui::GetStyle().FramePadding.x;
  if (std::exchange(appearing_, false)) {
    ui::focus_next_item();
  }
  ImGui::SetNextItemWidth(-width - ImGui::GetStyle().ItemSpacing.x);
  const bool enter = ImGui::InputTextWithHint(fmt::format("##path{}", started_).c_str(),
                                              ui::tr(S::kPath),
                                              &path_,
                                              ImGuiInputTextFlags_EnterReturnsTrue);
  ui::tag(tag + ".path", path_);
  ImGui::SameLine();
  const bool hit = ImGui::Button(fmt::format("{}##write", word).c_str());
  ui::tag(tag + ".write", word);
  if (ask) {
    ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().bad);
    ImGui::TextWrapped("%s", ui::tr(S::kReplaceAsk));
    ImGui::PopStyleColor();
    ui::tag(tag + ".exists", path_);
  }
  if (!(enter || hit) || path_.empty()) {
    return false;
  }
  if (!ask && is_taken(path_)) {
    asked_ = path_;
    appearing_ = enter;  // the line keeps the keyboard: Enter again replaces
    return false;
  }
  return true;
}

}  // namespace lockstep::app
