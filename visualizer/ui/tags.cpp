#include "visualizer/ui/tags.h"

#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"

namespace lockstep::ui {

const Tag* Tags::find(std::string_view id) const {
  if (const auto it = now_.find(id); it != now_.end()) {
    return &it->second;
  }
  const auto it = last_.find(id);
  return it == last_.end() ? nullptr : &it->second;
}

bool Tags::take_focus(std::string_view id) {
  if (wanted_ != id) {
    return false;
  }
  wanted_.clear();
  return true;
}

void tag(std::string_view id, std::string_view value, bool enabled) {
  state().tags.add(id,
                   {ImGui::GetItemRectMin(),
                    ImGui::GetItemRectMax(),
                    std::string(value),
                    ImGui::IsItemVisible(),
                    enabled});
}

void tag_rect(std::string_view id, const ImVec2& min, const ImVec2& max, std::string_view value) {
  state().tags.add(id, {min, max, std::string(value), ImGui::IsRectVisible(min, max), true});
}

void focus_if_wanted(std::string_view id) {
  if (state().tags.take_focus(id)) {
    focus_next_item();
  }
}

}  // namespace lockstep::ui
