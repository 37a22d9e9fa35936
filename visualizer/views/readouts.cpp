#include "visualizer/views/readouts.h"

#include <string>

#include "visualizer/ui/draw.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {

using ui::scaled;

Readouts::Readouts(bool beside)
    : beside_(beside),
      one_line_(ImGui::GetWindowHeight() < scaled(340)),
      right_(ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x) {}

void Readouts::add(std::string_view tag, ui::S name, std::string_view value) {
  const ImFont& font = *ui::state().fonts.text;
  const std::string_view title = ui::tr(name);
  const float needed = ui::text_width(font, title) + scaled(6) + ui::text_width(font, value);
  const bool fits = ImGui::GetItemRectMax().x + scaled(16) + needed <= right_;
  if (beside_ && !fits && one_line_) {
    return;
  }
  if (beside_ && fits) {
    ImGui::SameLine(0, scaled(16));
  }
  beside_ = true;
  ImGui::AlignTextToFramePadding();
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
  ImGui::TextUnformatted(title.data(), title.data() + title.size());
  ImGui::PopStyleColor();
  ImGui::SameLine(0, scaled(6));
  const std::string shown = ui::elided(font, value, right_ - ImGui::GetItemRectMax().x - scaled(6));
  ImGui::TextUnformatted(shown.c_str());
  ui::tag(tag, value);
}

}  // namespace lockstep::views
