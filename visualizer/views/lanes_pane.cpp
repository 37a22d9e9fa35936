#include "visualizer/views/lanes_pane.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "visualizer/models/timeline_text.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

using ui::Rect;
using ui::scaled;
using view::LaneBox;
using view::TimeWindow;

constexpr double kMostBoxes = 4000;
constexpr Nanoseconds kShortest = 20;  ///< of a window
constexpr float kDragPixels = 4;

double pixels(float length) {
  return std::max(1.0, static_cast<double>(length));
}

}  // namespace

void LanesPane::show(const view::Lanes* lanes) {
  if (lanes == lanes_) {
    return;
  }
  lanes_ = lanes;
  group_of_row_.clear();
  std::size_t group = 0;
  for (std::size_t row = 0; lanes != nullptr && row < lanes->rows().size(); ++row) {
    group += row > 0 && lanes->rows()[row].group != lanes->rows()[row - 1].group ? 1U : 0U;
    group_of_row_.push_back(group);
  }
  scroll_ = 0;
  drag_from_.reset();
  limits_.reset();
  fit();
}

void LanesPane::fit() {
  window_ = lanes_ == nullptr ? TimeWindow{} : limits();
}

TimeWindow LanesPane::limits() const {
  return limits_.value_or(lanes_->whole());
}

void LanesPane::set_window(TimeWindow window) {
  const TimeWindow whole = limits();
  const Nanoseconds length =
      std::clamp(window.length(), std::min(kShortest, whole.length()), whole.length());
  const Nanoseconds from = std::clamp(window.from, whole.from, whole.to - length);
  window_ = {from, from + length};
}

void LanesPane::zoom(double factor, Nanoseconds around) {
  const auto length = static_cast<double>(window_.length()) * factor;
  const double part = static_cast<double>(around - window_.from) /
                      static_cast<double>(std::max<Nanoseconds>(1, window_.length()));
  const auto whole = static_cast<double>(limits().length());
  const auto wanted = static_cast<Nanoseconds>(std::min(length, whole));
  const Nanoseconds from = around - static_cast<Nanoseconds>(part * static_cast<double>(wanted));
  set_window({from, from + wanted});
}

void LanesPane::pan(Nanoseconds distance) {
  set_window({window_.from + distance, window_.to + distance});
}

float LanesPane::x_of(const Rect& body, Nanoseconds time) const {
  const double part = static_cast<double>(time - window_.from) /
                      static_cast<double>(std::max<Nanoseconds>(1, window_.length()));
  // Far outside is outside: floats would not hold it.
  const double x = std::clamp(part, -4.0, 5.0) * static_cast<double>(body.width());
  return std::floor(body.min.x + static_cast<float>(x));
}

Nanoseconds LanesPane::time_at(const Rect& body, float x) const {
  const double part = static_cast<double>(x - body.min.x) / pixels(body.width());
  return window_.from + static_cast<Nanoseconds>(part * static_cast<double>(window_.length()));
}

float LanesPane::rows_height(float row_height, float gap) const {
  const auto rows = static_cast<float>(lanes_->rows().size());
  const float groups = group_of_row_.empty() ? 0 : static_cast<float>(group_of_row_.back());
  return rows * row_height + groups * gap;
}

float LanesPane::label_width() const {
  float label_width = scaled(60);
  for (const view::LaneRow& row : lanes_->rows()) {
    const float width = ui::text_width(*ui::state().fonts.small, ui::term(row.group)) +
                        ui::text_width(*ui::state().fonts.small, ui::term(row.name));
    label_width = std::max(label_width, width + scaled(22));
  }
  return label_width;
}

LanesPane::Layout LanesPane::layout(const ImVec2& origin, const ImVec2& size) const {
  Layout at;
  const float wanted = std::max(least_label_width_, label_width());
  const float labels = std::floor(std::min(wanted, size.x * 0.4F));
  const float head = std::floor(scaled(20));
  const float map = std::floor(scaled(34));
  const float gap = std::floor(scaled(6));
  const ImVec2 end(origin.x + size.x, origin.y + size.y);
  at.head = {ImVec2(origin.x + labels, origin.y), ImVec2(end.x, origin.y + head)};
  at.map = {ImVec2(origin.x + labels, end.y - map), end};
  at.body = {ImVec2(at.head.min.x, at.head.max.y), ImVec2(end.x, at.map.min.y - gap)};
  at.labels = {ImVec2(origin.x, at.body.min.y), ImVec2(at.body.min.x, at.body.max.y)};
  at.group_gap = gap;
  const float groups = group_of_row_.empty() ? 0 : static_cast<float>(group_of_row_.back());
  const auto rows = static_cast<float>(std::max<std::size_t>(1, lanes_->rows().size()));
  at.row_height =
      std::floor(std::clamp((at.body.height() - groups * gap) / rows, scaled(18), scaled(84)));
  return at;
}

Rect LanesPane::row_rect(const Layout& at, std::size_t row) const {
  const float top = at.body.min.y - scroll_ + static_cast<float>(row) * at.row_height +
                    static_cast<float>(group_of_row_[row]) * at.group_gap;
  return {ImVec2(at.body.min.x, std::floor(top)),
          ImVec2(at.body.max.x, std::floor(top) + at.row_height - 1)};
}

Nanoseconds LanesPane::narrowest(const Layout& at) const {
  const double shown = std::min(static_cast<double>(lanes_->rows().size()),
                                static_cast<double>(at.body.height() / at.row_height) + 1);
  const double width = std::max(1.0, shown * pixels(at.body.width()) / kMostBoxes);
  return std::max<Nanoseconds>(
      1,
      static_cast<Nanoseconds>(width * static_cast<double>(window_.length()) /
                               pixels(at.body.width())));
}

std::optional<LanesBoxRef> LanesPane::box_under(const Layout& at, const ImVec2& point) const {
  if (!at.body.contains(point)) {
    return std::nullopt;
  }
  for (std::size_t row = 0; row < lanes_->rows().size(); ++row) {
    const Rect rect = row_rect(at, row);
    if (point.y < rect.min.y || point.y >= rect.max.y) {
      continue;
    }
    const Nanoseconds time = time_at(at.body, point.x);
    const Nanoseconds pixel = std::max<Nanoseconds>(1, window_.length() / 1000);
    for (const LaneBox& box : lanes_->boxes(row, {time - pixel, time + pixel}, narrowest(at))) {
      if (box.begin <= time && time < std::max(box.end, box.begin + narrowest(at))) {
        return LanesBoxRef{row, box};
      }
    }
  }
  return std::nullopt;
}

// ---- Input --------------------------------------------------------------------------------------

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
  if (next.begin < window_.from || next.end > window_.to) {
    const Nanoseconds middle = (next.begin + next.end) / 2;
    pan(middle - (window_.from + window_.to) / 2);
  }
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
  if (ui::typed('[')) {
    walk(choice, -1);
  }
  if (ui::typed(']')) {
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

// ---- Paint --------------------------------------------------------------------------------------

void LanesPane::paint_labels(const Layout& at) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImFont* font = ui::state().fonts.small;
  list.PushClipRect(at.labels.min, ImVec2(at.body.max.x, at.body.max.y), true);
  for (std::size_t row = 0; row < lanes_->rows().size(); ++row) {
    const view::LaneRow& it = lanes_->rows()[row];
    const Rect rect = row_rect(at, row);
    if (rect.max.y < at.body.min.y || rect.min.y > at.body.max.y) {
      continue;
    }
    const float y = rect.min.y + (rect.height() - font->FontSize) / 2;
    if (row == 0 || lanes_->rows()[row - 1].group != it.group) {
      ui::text_at(list, font, ImVec2(at.labels.min.x, y), ui::theme().text, it.group);
    }
    const std::string_view name = ui::term(it.name);
    const float width = ui::text_width(*font, name);
    ui::text_at(
        list, font, ImVec2(at.labels.max.x - width - scaled(6), y), ui::theme().muted, name);
  }
  list.PopClipRect();
}

void LanesPane::paint_box(const Layout& at, std::size_t row, const LaneBox& box, Rect place) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Look& look = ui::theme().look(box.paint);
  const bool folded = box.item == view::kNoItem;
  if (folded) {
    // As high as it is busy, so that gaps are not lost.
    const double busy = static_cast<double>(box.busy) /
                        static_cast<double>(std::max<Nanoseconds>(1, box.end - box.begin));
    place.min.y += std::floor(static_cast<float>((1 - busy) * 0.8) * place.height());
  } else if (place.width() > scaled(4)) {
    place.max.x -= 1;
  }
  ui::box(list, place, look, at.body);
  const Rect seen = ui::intersect(place, at.body);
  const float em = ui::state().fonts.small->FontSize;
  if (seen.width() >= 3 * em) {
    // Many small ones side by side: what they are together.
    ui::label(list,
              seen,
              look,
              folded ? std::string(ui::term(name_of(box.paint))) : lanes_->label(row, box));
  } else if (seen.width() >= em && seen.height() >= em) {
    ui::letter(list, seen, look, letter_of(box.paint));
  }
}

void LanesPane::paint_row(const Layout& at, std::size_t row, Nanoseconds narrow) const {
  const Rect rect = row_rect(at, row);
  const Rect clip = ui::intersect(rect, at.body);
  ImGui::GetWindowDrawList()->AddRectFilled(clip.min, clip.max, ui::theme().raised);
  const float small = scaled(5);
  std::optional<LaneBox> run;  // small neighbours of one paint, drawn as one
  Rect place = rect;
  const auto flush = [&] {
    if (run) {
      place.max.x = std::max(place.max.x, place.min.x + 1);
      paint_box(at, row, *run, place);
      run.reset();
    }
  };
  for (const LaneBox& box : lanes_->boxes(row, window_, narrow)) {
    const float left = x_of(at.body, box.begin);
    const float right = x_of(at.body, box.end);
    const bool joins = run && run->paint == box.paint && left <= place.max.x + 1 &&
                       right - left < small && run->item == view::kNoItem;
    if (joins) {
      run->end = box.end;
      run->busy += box.busy;
      run->count += box.count;
      place.max.x = right;
      continue;
    }
    flush();
    run = box;
    run->item = right - left < small ? view::kNoItem : box.item;
    place.min.x = left;
    place.max.x = right;
  }
  flush();
}

void LanesPane::paint_rows(const Layout& at, const LanesChoice& choice) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const Nanoseconds start = lanes_->whole().from;  // times are those of the step
  ui::draw_time_axis(list, at.head, at.body, {window_.from - start, window_.to - start});
  list.PushClipRect(at.body.min, at.body.max, true);
  const Nanoseconds narrow = narrowest(at);
  for (std::size_t row = 0; row < lanes_->rows().size(); ++row) {
    const Rect rect = row_rect(at, row);
    if (rect.max.y > at.body.min.y && rect.min.y < at.body.max.y) {
      paint_row(at, row, narrow);
    }
  }
  paint_choice(at, choice);
  list.PopClipRect();
}

void LanesPane::paint_choice(const Layout& at, const LanesChoice& choice) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Theme& theme = ui::theme();
  if (choice.area) {
    const float left = x_of(at.body, choice.area->from);
    const float right = std::max(left + 1, x_of(at.body, choice.area->to));
    list.AddRectFilled(ImVec2(left, at.body.min.y), ImVec2(right, at.body.max.y), theme.selection);
    list.AddRectFilled(ImVec2(left, at.body.min.y), ImVec2(left + 1, at.body.max.y), theme.accent);
    list.AddRectFilled(
        ImVec2(right - 1, at.body.min.y), ImVec2(right, at.body.max.y), theme.accent);
  }
  if (choice.selected && choice.selected->row < lanes_->rows().size()) {
    const Rect rect = row_rect(at, choice.selected->row);
    const float left = x_of(at.body, choice.selected->box.begin);
    const float right = std::max(left + 2, x_of(at.body, choice.selected->box.end));
    const float line = std::max(2.0F, std::floor(scaled(2)));
    list.AddRect(ImVec2(left - line / 2, rect.min.y),
                 ImVec2(right + line / 2, rect.max.y),
                 theme.cursor,
                 0,
                 0,
                 line);
  }
  if (choice.cursor && *choice.cursor >= window_.from && *choice.cursor <= window_.to) {
    const float x = x_of(at.body, *choice.cursor);
    list.AddRectFilled(ImVec2(x, at.body.min.y), ImVec2(x + 1, at.body.max.y), theme.cursor);
  }
}

void LanesPane::paint_map(const Layout& at) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled(at.map.min, at.map.max, ui::theme().raised);
  constexpr std::size_t kMostRows = 8;
  const std::size_t rows = lanes_->rows().size();
  const std::size_t strips = std::min(rows, kMostRows);
  const TimeWindow whole = limits();
  const double scale = static_cast<double>(at.map.width()) /
                       static_cast<double>(std::max<Nanoseconds>(1, whole.length()));
  const float height = at.map.height() / static_cast<float>(std::max<std::size_t>(1, strips));
  const auto narrow = static_cast<Nanoseconds>(4 / std::max(scale, 1e-12));
  for (std::size_t strip = 0; strip < strips; ++strip) {
    const std::size_t row = strip * rows / strips;
    const float top = std::floor(at.map.min.y + static_cast<float>(strip) * height);
    for (const LaneBox& box : lanes_->boxes(row, whole, narrow)) {
      const auto x = [&](Nanoseconds time) {
        return std::floor(at.map.min.x +
                          static_cast<float>(static_cast<double>(time - whole.from) * scale));
      };
      list.AddRectFilled(ImVec2(x(box.begin), top),
                         ImVec2(std::max(x(box.begin) + 1, x(box.end)),
                                top + std::max(1.0F, std::floor(height) - 1)),
                         ui::theme().look(box.paint).fill);
    }
  }
  const double from = static_cast<double>(window_.from - whole.from) * scale;
  const double to = static_cast<double>(window_.to - whole.from) * scale;
  const float left = at.map.min.x + static_cast<float>(from);
  const float right = std::max(left + 3, at.map.min.x + static_cast<float>(to));
  const ImU32 shade = (ui::theme().panel & 0x00ffffffU) | 0xb0000000U;
  list.AddRectFilled(at.map.min, ImVec2(left, at.map.max.y), shade);
  list.AddRectFilled(ImVec2(right, at.map.min.y), at.map.max, shade);
  list.AddRect(
      ImVec2(left, at.map.min.y), ImVec2(right, at.map.max.y), ui::theme().accent, 0, 0, 2);
}

void LanesPane::paint_tooltip(const Layout& at) const {
  if (drag_from_ && ImGui::IsMouseDragging(ImGuiMouseButton_Left, kDragPixels)) {
    return;
  }
  const std::optional<LanesBoxRef> under = box_under(at, ImGui::GetIO().MousePos);
  if (!under) {
    return;
  }
  const LaneBox& box = under->box;
  const std::string_view paint = ui::term(name_of(box.paint));
  const std::string length = view::time_text(box.end - box.begin, true);
  ImGui::BeginTooltip();
  if (box.item == view::kNoItem) {
    ImGui::TextUnformatted(ui::trf(ui::S::kFolded, box.count, paint).c_str());
    ImGui::TextUnformatted(length.c_str());
  } else {
    ImGui::TextUnformatted(lanes_->label(under->row, box).c_str());
    ImGui::TextUnformatted(fmt::format("{}, {}", paint, length).c_str());
  }
  ImGui::EndTooltip();
}

void LanesPane::draw(LanesChoice& choice, bool has_keys) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const ImVec2 size = ImGui::GetContentRegionAvail();
  if (lanes_ == nullptr || lanes_->rows().empty() || size.x < scaled(120) || size.y < scaled(90)) {
    return;
  }
  const Layout at = layout(ImVec2(std::floor(origin.x), std::floor(origin.y)),
                           ImVec2(std::floor(size.x), std::floor(size.y)));
  handle_mouse(at, choice);
  const bool hovered = ImGui::IsItemHovered() && !ImGui::IsAnyItemActive();
  handle_map(at);
  if (has_keys) {
    handle_keys(at, choice);
  }
  const float most = rows_height(at.row_height, at.group_gap) - at.body.height();
  scroll_ = std::clamp(scroll_, 0.0F, std::max(0.0F, most));
  paint_labels(at);
  paint_rows(at, choice);
  paint_map(at);
  if (hovered) {
    paint_tooltip(at);
  }
}

void draw_paint_legend(const view::Lanes& lanes) {
  std::array<bool, view::kPaintCount> used{};
  const Nanoseconds coarse = std::max<Nanoseconds>(1, lanes.whole().length() / 200);
  for (std::size_t row = 0; row < lanes.rows().size(); ++row) {
    for (const LaneBox& box : lanes.boxes(row, lanes.whole(), coarse)) {
      used[static_cast<std::size_t>(box.paint)] = true;
    }
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float end = origin.x + ImGui::GetContentRegionAvail().x;
  const float line = std::floor(ui::state().fonts.small->FontSize * 1.6F);
  ImVec2 at = origin;
  for (int i = 0; i < view::kPaintCount; ++i) {
    if (!used[static_cast<std::size_t>(i)]) {
      continue;
    }
    const auto paint = static_cast<view::Paint>(i);
    const std::string_view name = ui::term(name_of(paint));
    const float width = scaled(30) + ui::text_width(*ui::state().fonts.small, name);
    if (at.x > origin.x && at.x + width > end) {
      at = ImVec2(origin.x, at.y + line);
    }
    const float drawn = ui::legend_entry(list, at, ui::theme().look(paint), letter_of(paint), name);
    at.x += std::floor(drawn + scaled(14));
  }
  ImGui::Dummy(ImVec2(1, at.y - origin.y + line));
}

}  // namespace lockstep::views
