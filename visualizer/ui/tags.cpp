#include "visualizer/ui/tags.h"

#include <algorithm>
#include <utility>

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

namespace {

Tag tag_at(const ImVec2& min, const ImVec2& max, std::string_view value, ImGuiID item) {
  Tag tag;
  tag.min = min;
  tag.max = max;
  tag.value = value;
  tag.item = item;
  auto [from, to] = window_seen();
  if (item == 0) {  // text ends with its column; what is pressed may span them
    from = ImGui::GetWindowDrawList()->GetClipRectMin();
    to = ImGui::GetWindowDrawList()->GetClipRectMax();
  }
  tag.seen_min = ImVec2(std::max(min.x, from.x), std::max(min.y, from.y));
  tag.seen_max = ImVec2(std::min(max.x, to.x), std::min(max.y, to.y));
  const auto [x, y] = scrolls();
  tag.scrolls_x = x;
  tag.scrolls_y = y;
  return tag;
}

}  // namespace

void tag(std::string_view id, std::string_view value, bool enabled) {
  Tag made = tag_at(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), value, last_item());
  made.visible = ImGui::IsItemVisible();
  made.enabled = enabled;
  state().tags.add(id, std::move(made));
}

void tag_rect(std::string_view id, const ImVec2& min, const ImVec2& max, std::string_view value) {
  Tag made = tag_at(min, max, value, 0);
  made.visible = ImGui::IsRectVisible(min, max);
  state().tags.add(id, std::move(made));
}

void focus_if_wanted(std::string_view id) {
  if (state().tags.take_focus(id)) {
    focus_next_item();
  }
}

}  // namespace lockstep::ui
