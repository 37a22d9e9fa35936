// Tags: where widgets are and what they show, by name, as of the last frame. Scripts press and read
// widgets by it, and it is the text that the window has for those who cannot see it.
//
//     ImGui::SliderFloat("##cap", &cap, 1, 200);
//     tag("ddp.cap", fmt::format("{}", cap));
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <imgui.h>

namespace lockstep::ui {

struct Tag {
  ImVec2 min;
  ImVec2 max;
  std::string value;
  bool visible = true;  ///< not scrolled away
  bool enabled = true;
  ImGuiID item = 0;  ///< of what can be pressed or typed into; 0: only read
  ImVec2 seen_min;   ///< what its window does not cut off
  ImVec2 seen_max;
  bool scrolls_x = false;  ///< what is cut off can be scrolled to
  bool scrolls_y = false;

  ImVec2 centre() const { return {(min.x + max.x) / 2, (min.y + max.y) / 2}; }
};

class Tags {
 public:
  void begin_frame() {
    last_.swap(now_);
    now_.clear();
  }
  void add(std::string_view id, Tag tag) { now_.insert_or_assign(std::string(id), std::move(tag)); }
  /// Of the frame before this one, or of this one once it has ended; null when there is none.
  const Tag* find(std::string_view id) const;
  const std::map<std::string, Tag, std::less<>>& all() const { return now_; }

  /// The next item with this tag takes the keyboard.
  void want_focus(std::string id) { wanted_ = std::move(id); }
  bool take_focus(std::string_view id);

 private:
  std::map<std::string, Tag, std::less<>> now_;
  std::map<std::string, Tag, std::less<>> last_;
  std::string wanted_;
};

/// Of the item that was drawn last.
void tag(std::string_view id, std::string_view value = "", bool enabled = true);
/// Of a place that is no item.
void tag_rect(std::string_view id,
              const ImVec2& min,
              const ImVec2& max,
              std::string_view value = "");
/// Call before a widget that shall be reachable by Tags::want_focus().
void focus_if_wanted(std::string_view id);

}  // namespace lockstep::ui
