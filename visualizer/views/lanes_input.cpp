// Mouse and keyboard in a LanesPane.
#include <algorithm>
#include <cmath>

#include <imgui_internal.h>

#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/lanes_pane.h"

namespace lockstep::views {
namespace {

using view::LaneBox;
using view::TimeWindow;

double pixels(float length) {
  return std::max(1.0, static_cast<double>(length));
}

}  // namespace

void LanesPane::drag(const Layout& at, LanesChoice& choice) {
  const ImGuiIO& io = ImGui::GetIO();
  const float moved = io.MouseDelta.x;
  if (io.KeyShift || ImGui::IsMouseDown(ImGuiMouseButton_Middle)) {
    drag_from_.reset();
    const double time = static_cast<double>(moved) * static_cast<double>(window_.length()) /
                        pixels(at.body.width());
    pan(-static_cast<Nanoseconds>(time));
    return;
  }
  if (drag_from_ && ImGui::IsMouseDragging(ImGuiMouseButton_Left, kDragPixels)) {
    const TimeWindow whole = limits();
    const Nanoseconds now = std::clamp(time_at(at.body, io.MousePos.x), whole.from, whole.to);
    choice.area = TimeWindow{std::min(*drag_from_, now), std::max(*drag_from_, now)};
  }
}

void LanesPane::click(const Layout& at, LanesChoice& choice) {
  choice.area.reset();
  choice.selected = box_under(at, ImGui::GetIO().MousePos);
  if (choice.selected && choice.selected->box.item == view::kNoItem) {
    const LaneBox& box = choice.selected->box;
    const Nanoseconds margin = (box.end - box.begin) / 10 + 1;
    set_window({box.begin - margin, box.end + margin});
    choice.selected.reset();
  }
}

void LanesPane::handle_mouse(const Layout& at, LanesChoice& choice) {
  ImGui::SetCursorScreenPos(at.labels.min);
  const ImVec2 size(at.body.max.x - at.labels.min.x, std::max(1.0F, at.body.height()));
  ImGui::InvisibleButton(
      "##lanes", size, ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonMiddle);
  ui::tag(name_ + ".body");
  ImGui::SetItemUsingMouseWheel();
  const ImGuiIO& io = ImGui::GetIO();
  const bool hovered = ImGui::IsItemHovered();
  const bool over_rows = hovered && at.body.contains(io.MousePos);
  if (hovered && io.MouseWheel != 0) {
    if (over_rows && !io.KeyCtrl) {
      zoom(std::pow(0.8, static_cast<double>(io.MouseWheel)), time_at(at.body, io.MousePos.x));
    } else {
      scroll_ -= io.MouseWheel * 3 * at.row_height;
    }
  }
  if (over_rows) {
    choice.cursor = time_at(at.body, io.MousePos.x);
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
      drag_from_ = *choice.cursor;
    }
  }
  if (ImGui::IsItemActive()) {
    drag(at, choice);
  }
  if (ImGui::IsMouseReleased(ImGuiMouseButton_Left) && drag_from_) {
    const bool was_click = ImGui::GetIO().MouseDragMaxDistanceSqr[0] < kDragPixels * kDragPixels;
    drag_from_.reset();
    if (was_click) {
      click(at, choice);
    }
  }
}

void LanesPane::walk(LanesChoice& choice, int direction) {
  if (!choice.selected) {
    for (std::size_t row = 0; row < lanes_->rows().size(); ++row) {
      const std::vector<LaneBox> boxes = lanes_->boxes(row, window_, 0);
      if (!boxes.empty()) {
        choice.selected = LanesBoxRef{row, boxes.front()};
        return;
      }
    }
    return;
  }
  const LanesBoxRef& now = *choice.selected;
  const TimeWindow whole = limits();
  const TimeWindow side =
      direction > 0 ? TimeWindow{now.box.end, whole.to} : TimeWindow{whole.from, now.box.begin};
  const std::vector<LaneBox> boxes = lanes_->boxes(now.row, side, 0);
  if (boxes.empty()) {
    return;
  }
  const LaneBox& next = direction > 0 ? boxes.front() : boxes.back();
  choice.selected = LanesBoxRef{now.row, next};
  reveal(*choice.selected);
}

void LanesPane::handle_keys(const Layout& at, LanesChoice& choice) {
  const float mouse = ImGui::GetIO().MousePos.x;
  const bool over = at.body.contains(ImGui::GetIO().MousePos);
  const Nanoseconds around = over ? time_at(at.body, mouse) : (window_.from + window_.to) / 2;
  const Nanoseconds stride = std::max<Nanoseconds>(1, window_.length() / 10);
  const auto hit = [](ui::Key key) { return ui::chord(key, ui::kPlain, true); };
  if (hit(ui::Key::kW)) {
    zoom(0.8, around);
  }
  if (hit(ui::Key::kS)) {
    zoom(1.25, around);
  }
  if (hit(ui::Key::kA) || hit(ui::Key::kLeft)) {
    pan(-stride);
  }
  if (hit(ui::Key::kD) || hit(ui::Key::kRight)) {
    pan(stride);
  }
  if (hit(ui::Key::kUp) || hit(ui::Key::kDown)) {
    scroll_ += (hit(ui::Key::kUp) ? -1.0F : 1.0F) * at.row_height;
  }
  if (hit(ui::Key::kF)) {
    fit();
  }
  if (hit(ui::Key::kZ) && (choice.area || choice.selected)) {
    const TimeWindow to = choice.area
                              ? *choice.area
                              : TimeWindow{choice.selected->box.begin, choice.selected->box.end};
    set_window({to.from - to.length() / 10, to.to + to.length() / 10});
  }
  if (ui::typed(walk_keys_.first)) {
    walk(choice, -1);
  }
  if (ui::typed(walk_keys_.second)) {
    walk(choice, 1);
  }
}

void LanesPane::handle_map(const Layout& at) {
  ImGui::SetCursorScreenPos(at.map.min);
  ImGui::InvisibleButton("##map", ImVec2(at.map.width(), at.map.height()));
  ui::tag(name_ + ".map");
  map_held_ = ImGui::IsItemActive();
  if (!map_held_) {
    return;
  }
  const TimeWindow whole = limits();
  const double part =
      static_cast<double>(ImGui::GetIO().MousePos.x - at.map.min.x) / pixels(at.map.width());
  const Nanoseconds middle =
      whole.from + static_cast<Nanoseconds>(part * static_cast<double>(whole.length()));
  pan(middle - (window_.from + window_.to) / 2);
}

}  // namespace lockstep::views
