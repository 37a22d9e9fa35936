#include "visualizer/views/lanes_pane.h"

#include <algorithm>
#include <cmath>

#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

using ui::Rect;
using ui::scaled;
using view::LaneBox;
using view::TimeWindow;

constexpr double kMostBoxes = 4000;
constexpr double kMostMarked = 2500;   ///< whose frames take more
constexpr Nanoseconds kShortest = 20;  ///< of a window

double pixels(float length) {
  return std::max(1.0, static_cast<double>(length));
}

}  // namespace

void LanesPane::show(const view::Lanes* lanes) {
  if (lanes == lanes_) {
    return;
  }
  lanes_ = lanes;
  count_rows();
  scroll_ = 0;
  drag_from_.reset();
  limits_.reset();
  fit();
}

void LanesPane::count_rows() {
  group_of_row_.clear();
  std::size_t group = 0;
  for (std::size_t row = 0; lanes_ != nullptr && row < lanes_->rows().size(); ++row) {
    group += row > 0 && lanes_->rows()[row].group != lanes_->rows()[row - 1].group ? 1U : 0U;
    group_of_row_.push_back(group);
  }
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

Nanoseconds LanesPane::narrowest(const Layout& at, bool marked) const {
  const double most = marked ? kMostMarked : kMostBoxes;
  const double shown = std::min(static_cast<double>(lanes_->rows().size()),
                                static_cast<double>(at.body.height() / at.row_height) + 1);
  const double width = std::max(1.0, shown * pixels(at.body.width()) / most);
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

void LanesPane::reveal(const LanesBoxRef& box) {
  revealed_row_ = box.row;
  if (box.box.begin < window_.from || box.box.end > window_.to) {
    pan((box.box.begin + box.box.end) / 2 - (window_.from + window_.to) / 2);
  }
}

void LanesPane::scroll_to(const Layout& at, std::size_t row) {
  const Rect rect = row_rect(at, row);
  scroll_ -= std::max(0.0F, at.body.min.y - rect.min.y);
  scroll_ += std::max(0.0F, rect.max.y - at.body.max.y);
}

void LanesPane::draw(LanesChoice& choice, bool has_keys, const LanesOverlay& overlay) {
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
  if (revealed_row_ && *revealed_row_ < group_of_row_.size()) {
    scroll_to(at, *revealed_row_);
  }
  revealed_row_.reset();
  const float most = rows_height(at.row_height, at.group_gap) - at.body.height();
  scroll_ = std::clamp(scroll_, 0.0F, std::max(0.0F, most));
  paint_labels(at);
  paint_rows(at, choice, overlay);
  paint_map(at);
  if (hovered) {
    paint_tooltip(at);
  }
}

}  // namespace lockstep::views
