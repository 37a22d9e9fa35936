// BucketsView: computation and reductions over time.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>
#include <imgui.h>

#include "core/report_text.h"
#include "visualizer/models/text_parts.h"
#include "visualizer/ui/plot.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/buckets_parts.h"
#include "visualizer/views/buckets_view.h"
#include "visualizer/views/readouts.h"

namespace lockstep::views {
namespace {

using ui::Rect;
using ui::S;
using ui::scaled;
using view::BucketLaunch;
using view::Paint;

/// The lanes' places, from the top: axis, compute, reductions, the tail's name.
struct LaneLayout {
  Rect head;
  Rect compute;
  Rect reductions;
  Rect strip;
};

LaneLayout lane_layout(const ImVec2& origin, const ImVec2& size, float labels) {
  const float left = std::floor(origin.x + labels);
  const float right = std::floor(origin.x + size.x);
  const float head = std::floor(scaled(18));
  const float strip = std::floor(scaled(18));
  const float gap = std::floor(scaled(4));
  const float lane = std::floor((size.y - head - strip - gap) / 2);
  const float top = std::floor(origin.y);
  LaneLayout at;
  at.head = {ImVec2(left, top), ImVec2(right, top + head)};
  at.compute = {ImVec2(left, at.head.max.y), ImVec2(right, at.head.max.y + lane)};
  at.reductions = {ImVec2(left, at.compute.max.y + gap),
                   ImVec2(right, at.compute.max.y + gap + lane)};
  at.strip = {ImVec2(left, at.reductions.max.y), ImVec2(right, at.reductions.max.y + strip)};
  return at;
}

void lane_name(const Rect& lane, float left, std::string_view name) {
  const ImFont* font = ui::state().fonts.small;
  const float y = (lane.min.y + lane.max.y - font->FontSize) / 2;
  ui::text_at(*ImGui::GetWindowDrawList(),
              font,
              ImVec2(left, y),
              ui::theme().text,
              ui::elided(*font, name, lane.min.x - left - scaled(4)));
}

/// Words where they fit, else the letter.
void name_box(ImDrawList& list,
              const Rect& rect,
              const ui::Look& look,
              std::string_view word,
              std::string_view letters) {
  const ImFont* font = ui::state().fonts.small;
  const float room = rect.width() - scaled(8);
  const std::string_view text = ui::text_width(*font, word) <= room ? word : letters;
  const float width = ui::text_width(*font, text);
  if (width > rect.width() - 2 || rect.height() < font->FontSize) {
    return;
  }
  ui::centred(list, rect, look, text);
}

}  // namespace

void BucketsView::draw_compute(const Rect& lane) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Plot plot{lane, buckets_->whole(), 1};
  const auto pixels = static_cast<Nanoseconds>(std::max(1.0F, lane.width()));
  // What is narrower, copies into buckets above all, is folded with its neighbours.
  const Nanoseconds pixel = std::max<Nanoseconds>(1, 5 * plot.time.length() / pixels);
  for (const view::TimelineRow& row : timeline_->rows()) {
    if (row.stream != Stream::kCompute) {
      continue;
    }
    const std::vector<view::TimelineBox> boxes = timeline_->boxes(row, plot.time, pixel);
    for (std::size_t i = 0; i < boxes.size();) {
      std::size_t last = i;
      while (last + 1 < boxes.size() && boxes[last + 1].paint == boxes[i].paint &&
             boxes[last + 1].begin - boxes[last].end <= pixel) {
        ++last;
      }
      const Paint paint = boxes[i].paint;
      const Rect rect{ImVec2(plot.x_of(boxes[i].begin), lane.min.y),
                      ImVec2(plot.x_of(boxes[last].end), lane.max.y)};
      const char letter = view::letter_of(paint);
      ui::box(list, rect, ui::theme().look(paint), lane);
      name_box(list, rect, ui::theme().look(paint), ui::term(view::name_of(paint)), {&letter, 1});
      i = last + 1;
    }
  }
}

void BucketsView::draw_reductions(const Rect& lane, const app::Session& session) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Plot plot{lane, buckets_->whole(), 1};
  const std::optional<std::size_t> selected = selected_launch(session);
  for (std::size_t i = 0; i < buckets_->launches().size(); ++i) {
    const BucketLaunch& it = buckets_->launches()[i];
    const auto rect = [&](Nanoseconds begin, Nanoseconds end) {
      const float left = plot.x_of(begin);
      return Rect{ImVec2(left, lane.min.y), ImVec2(std::max(left + 2, plot.x_of(end)), lane.max.y)};
    };
    if (it.started > it.arrived) {
      const Rect wait = rect(it.arrived, it.started);
      ui::box(list, wait, ui::theme().look(Paint::kWaiting), lane);
    }
    const Rect transfer = rect(it.started, it.ended);
    const ui::Look& look = ui::theme().look(Paint::kTransfer);
    ui::box(list, transfer, look, lane);
    list.AddRectFilled(transfer.min, ImVec2(transfer.min.x + 1, transfer.max.y), ui::theme().panel);
    const std::string letters = bucket_letters(index_of(it.bucket));
    name_box(list, transfer, look, letters, letters);
    if (selected == i) {
      list.AddRect(transfer.min, transfer.max, ui::theme().cursor, 0, 0, scaled(2));
    }
  }
}

void BucketsView::draw_tail(const Rect& lanes, const Rect& strip) const {
  const view::TimeWindow& tail = buckets_->summary().tail;
  if (tail.length() <= 0) {
    return;
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Plot plot{lanes, buckets_->whole(), 1};
  const float left = plot.x_of(tail.from);
  const float right = std::max(left + 2, plot.x_of(tail.to));
  const float thick = std::max(1.0F, std::floor(scaled(2)));
  list.AddRectFilled(ImVec2(left, lanes.min.y), ImVec2(right, lanes.max.y), ui::theme().selection);
  list.AddRectFilled(ImVec2(left, lanes.min.y), ImVec2(left + 1, strip.max.y), ui::theme().bad);
  list.AddRectFilled(ImVec2(right - 1, lanes.min.y), ImVec2(right, strip.max.y), ui::theme().bad);
  list.AddRectFilled(ImVec2(left, strip.min.y + scaled(2)),
                     ImVec2(right, strip.min.y + scaled(2) + thick),
                     ui::theme().bad);
  const std::string text =
      fmt::format("{} {}", ui::tr(S::kBucketsTail), view::time_text(tail.length(), true));
  const float width = ui::text_width(*ui::state().fonts.small, text) + scaled(6);
  const bool before = right + scaled(4) + width > strip.max.x;
  const float at = right - left > width ? left + scaled(4)
                   : before             ? left - scaled(4) - width
                                        : right + scaled(4);
  ui::draw_plate(list, strip, ImVec2(at, strip.min.y + scaled(5)), text);
}

void BucketsView::draw_lanes(app::Session& session, const ImVec2& size) const {
  const ImFont* font = ui::state().fonts.small;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const std::string_view compute = ui::term("compute");
  const std::string& kind = buckets_->summary().kind;
  const float labels =
      std::min(size.x / 4,
               std::max(ui::text_width(*font, compute), ui::text_width(*font, kind)) + scaled(10));
  const LaneLayout at = lane_layout(origin, size, labels);
  if (at.head.width() < scaled(60) || at.compute.height() < scaled(8)) {
    return;
  }
  const Rect body{at.compute.min, at.reductions.max};
  ImGui::SetCursorScreenPos(at.head.min);
  ImGui::InvisibleButton("##lanes", ImVec2(at.head.width(), at.strip.max.y - at.head.min.y));
  ui::tag_rect("buckets.lanes", body.min, body.max, std::to_string(now_));
  const ui::Plot plot{body, buckets_->whole(), 1};
  if (ImGui::IsItemActive()) {
    session.cursor = plot.time_at(ImGui::GetIO().MousePos.x);
  }
  if (ImGui::IsItemClicked() && at.reductions.contains(ImGui::GetIO().MousePos)) {
    const Nanoseconds time = plot.time_at(ImGui::GetIO().MousePos.x);
    for (const BucketLaunch& it : buckets_->launches()) {
      if (it.started <= time && time < it.ended) {
        session.selection = app::Selection{chooser_.rank(), it.operation};
      }
    }
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  ui::draw_time_axis(list, at.head, body, plot.time);
  lane_name(at.compute, origin.x, compute);
  lane_name(at.reductions, origin.x, kind);
  draw_compute(at.compute);
  draw_reductions(at.reductions, session);
  draw_tail(body, at.strip);
  ui::draw_cursor(list, body, plot.time, now_, "");
}

}  // namespace lockstep::views
