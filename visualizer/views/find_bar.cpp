#include "visualizer/views/find_bar.h"

#include <algorithm>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {

using ui::Key;
using ui::S;
using ui::scaled;

void FindBar::use(const view::Lanes* lanes) {
  lanes_ = lanes;
  find_.reset();
  counted_.reset();
  number_.reset();
}

void FindBar::open() {
  open_ = true;
  wants_focus_ = true;
}

bool FindBar::close() {
  const bool was_open = open_;
  open_ = false;
  return was_open;
}

const view::LaneMarks* FindBar::marks() const {
  return open_ && find_ != nullptr && !find_->text().empty() ? &find_->marks() : nullptr;
}

/// Some names a frame; then what is searched for.
void FindBar::read() {
  if (find_ == nullptr) {
    find_ = std::make_unique<view::LaneFind>(*lanes_);
  }
  if (!find_->is_ready() && find_->prepare()) {
    return;
  }
  if (input_ != find_->text()) {
    find_->search(input_);
    counted_.reset();
    number_.reset();
  }
}

/// True when Enter was pressed in it.
bool FindBar::draw_input() {
  ImGui::SetNextItemWidth(std::min(scaled(220), ImGui::GetContentRegionAvail().x * 0.4F));
  if (wants_focus_) {
    wants_focus_ = false;
    ui::focus_next_item();
  }
  const bool enter = ImGui::InputTextWithHint(
      "##find", ui::tr(S::kFindHint), &input_, ImGuiInputTextFlags_EnterReturnsTrue);
  const bool left = ImGui::IsItemDeactivated() && ui::pressed(Key::kEscape, false);
  ui::tag("find.text", input_);
  if (left) {
    close();
  }
  return enter;
}

bool FindBar::button(const char* tag, const char* label, S meaning) const {
  ImGui::SameLine();
  const bool hit = ImGui::Button(fmt::format("{}##{}", label, tag).c_str());
  ui::tag(tag, ui::tr(meaning));
  if (ImGui::IsItemHovered()) {
    ImGui::SetTooltip("%s", ui::tr(meaning));
  }
  return hit;
}

void FindBar::count(const std::optional<LanesBoxRef>& selected) {
  const bool same =
      selected.has_value() == counted_.has_value() &&
      (!selected || (selected->row == counted_->row && selected->box.item == counted_->box.item));
  if (!same) {
    counted_ = selected;
    number_ = selected ? find_->number_of(selected->row, selected->box.item) : std::nullopt;
  }
}

std::optional<view::FoundItem> FindBar::go(int direction, Nanoseconds from) const {
  const std::vector<view::FoundItem>& found = find_->found();
  if (direction == 0 || found.empty()) {
    return std::nullopt;
  }
  if (!number_) {
    const std::size_t next = find_->first_from(from);
    return found[direction > 0 ? next : (next + found.size() - 1) % found.size()];
  }
  const std::size_t step = direction > 0 ? 1 : found.size() - 1;
  return found[(*number_ + step) % found.size()];
}

std::optional<view::FoundItem> FindBar::draw(const std::optional<LanesBoxRef>& selected,
                                             Nanoseconds from,
                                             bool has_keys) {
  if (has_keys && ui::typed('/')) {
    open();
  }
  if (!open_) {
    if (ImGui::Button(fmt::format("{}...##find", ui::tr(S::kFind)).c_str())) {
      open();
    }
    ui::tag("find.open");
    return std::nullopt;
  }
  const bool back = (ui::modifiers_held() & ui::kShift) != 0;
  int direction = draw_input() ? (back ? -1 : 1) : 0;
  read();
  count(selected);
  const std::size_t all = find_->found().size();
  direction = button("find.previous", "\xE2\x86\x90", S::kFindPrevious) ? -1 : direction;
  direction = button("find.next", "\xE2\x86\x92", S::kFindNext) ? 1 : direction;
  if (button("find.close", "x", S::kClose)) {
    close();
  }
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  const std::string text = number_          ? ui::trf(S::kFindCount, *number_ + 1, all)
                           : all > 0        ? ui::trf(S::kFindAll, all)
                           : input_.empty() ? ""
                                            : std::string(ui::tr(S::kNothingFound));
  ImGui::TextUnformatted(text.c_str());
  ui::tag("find.count", text);
  if (has_keys && (ui::typed('n') || ui::chord(Key::kEnter, ui::kPlain))) {
    direction = 1;
  }
  if (has_keys && (ui::typed('N') || ui::chord(Key::kEnter, ui::kShift))) {
    direction = -1;
  }
  return go(direction, selected ? selected->box.begin : from);
}

std::vector<KeyHelp> FindBar::keys() {
  return {{"/", S::kFind}, {"n N", S::kKeyFound}};
}

}  // namespace lockstep::views
