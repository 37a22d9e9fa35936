// BucketsView: the list of parameters, and buckets as vessels that they drop into.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>
#include <imgui.h>

#include "core/report_text.h"
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
using view::BucketPhase;
using view::BucketState;
using view::Paint;

std::string phase_text(const BucketState& state) {
  switch (state.phase) {
    case BucketPhase::kEmpty:
      return ui::tr(S::kBucketPhaseEmpty);
    case BucketPhase::kFilling:
      return ui::trf(S::kBucketPhaseFilling, std::floor(100 * state.filled));
    case BucketPhase::kReady:
      return ui::tr(S::kBucketPhaseReady);
    case BucketPhase::kInFlight:
      return ui::tr(S::kBucketPhaseFlight);
    default:
      return ui::tr(S::kBucketPhaseDone);
  }
}

ui::Look look_of(BucketPhase phase) {
  if (phase == BucketPhase::kInFlight) {
    return ui::theme().look(Paint::kTransfer);
  }
  if (phase == BucketPhase::kDone) {
    return {ui::theme().active, ui::theme().text, ui::Hatch::kNone, false};
  }
  return ui::theme().memory[static_cast<std::size_t>(Category::kGradient)];
}

float part(std::int64_t bytes, std::int64_t of) {
  return static_cast<float>(static_cast<double>(bytes) /
                            static_cast<double>(std::max<std::int64_t>(1, of)));
}

}  // namespace

void BucketsView::draw_parameter(app::Session& session, std::int32_t parameter, bool is_in) const {
  const view::BucketParameter& it = buckets_->parameters()[index_of(parameter)];
  const auto bucket = index_of(it.bucket);
  const bool selected = selected_bucket(session) == bucket;
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(parameter);
  if (ImGui::Selectable(is_in ? "+" : " ", selected, ImGuiSelectableFlags_SpanAllColumns)) {
    select(session, bucket);
  }
  ImGui::PopID();
  ui::tag("parameter." + it.name, bucket_letters(bucket) + (is_in ? " in" : ""));
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(bucket_letters(bucket).c_str());
  ImGui::TableNextColumn();
  const std::string name =
      ui::elided(*ui::state().fonts.text, it.name, ImGui::GetContentRegionAvail().x);
  ImGui::TextUnformatted(name.c_str());
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(bytes_text(it.bytes).c_str());
}

void BucketsView::draw_parameters(app::Session& session, const ImVec2& size) {
  std::vector<bool> is_in(buckets_->parameters().size(), false);
  for (const BucketState& state : states_) {
    for (const view::BucketDrop& drop : buckets_->launches()[index_of(state.launch)].drops) {
      is_in[index_of(drop.parameter)] = drop.filled <= now_;
    }
  }
  const ImGuiTableFlags flags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("##parameters", 4, flags, size)) {
    return;
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn(ui::tr(S::kBucketsIn));
  ImGui::TableSetupColumn(ui::tr(S::kBucketsBucket));
  ImGui::TableSetupColumn(ui::tr(S::kBucketsParameter), ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupColumn(ui::tr(S::kMemorySize));
  ImGui::TableHeadersRow();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(order_.size()));
  while (clipper.Step()) {
    for (int row = clipper.DisplayStart; row < clipper.DisplayEnd; ++row) {
      const std::int32_t parameter = order_[index_of(row)];
      draw_parameter(session, parameter, is_in[index_of(parameter)]);
    }
  }
  if (listed_ != now_) {
    // What drops next stays in sight.
    const auto next = std::find_if(
        order_.begin(), order_.end(), [&](std::int32_t it) { return !is_in[index_of(it)]; });
    const float rows = static_cast<float>(next - order_.begin());
    const float height = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
    ImGui::SetScrollY(std::max(0.0F, rows * height - ImGui::GetWindowHeight() / 2));
  }
  ImGui::EndTable();
}

std::int64_t BucketsView::capacity(std::size_t bucket) const {
  const view::Bucket& it = buckets_->buckets()[bucket];
  const std::int64_t most = std::max(it.member_bytes, it.cap_bytes.value_or(0));
  return std::max<std::int64_t>(1, most + most / 6);
}

void BucketsView::draw_content(const Rect& vessel, std::size_t bucket) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const BucketState& state = states_[bucket];
  const ui::Look look = look_of(state.phase);
  const auto y_of = [&](std::int64_t bytes) {
    return std::floor(vessel.max.y - vessel.height() * part(bytes, capacity(bucket)));
  };
  const float level = y_of(state.filled_bytes);
  const Rect fill{ImVec2(vessel.min.x, level), vessel.max};
  if (state.filled_bytes > 0) {
    ui::box(list, fill, look, vessel);
  }
  // Where it will be full.
  const float full = y_of(buckets_->buckets()[bucket].member_bytes);
  list.AddRectFilled(ImVec2(vessel.min.x, full), ImVec2(vessel.max.x, full + 1), ui::theme().muted);
  std::int64_t sum = 0;
  float last = vessel.max.y;
  for (const view::BucketDrop& drop : buckets_->launches()[index_of(state.launch)].drops) {
    sum += buckets_->parameters()[index_of(drop.parameter)].bytes;
    const float y = y_of(sum);
    if (sum <= state.filled_bytes && last - y >= scaled(6)) {
      list.AddRectFilled(ImVec2(vessel.min.x, y), ImVec2(vessel.max.x, y + 1), ui::theme().panel);
      last = y;
    }
  }
}

void BucketsView::draw_vessel(const Rect& cell, std::size_t bucket, bool selected) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImFont* font = ui::state().fonts.small;
  const view::Bucket& it = buckets_->buckets()[bucket];
  const float line = font->FontSize + scaled(2);
  const float margin = std::floor(scaled(6));
  const Rect vessel{ImVec2(cell.min.x + margin, cell.min.y + margin),
                    ImVec2(cell.max.x - margin, cell.max.y - 2 * line - scaled(4))};
  list.AddRectFilled(vessel.min, vessel.max, ui::theme().raised);
  draw_content(vessel, bucket);
  const float wall = std::max(1.0F, std::floor(scaled(2)));
  const ImU32 edge = selected ? ui::theme().accent : ui::theme().text;
  list.AddRectFilled(
      ImVec2(vessel.min.x - wall, vessel.min.y), ImVec2(vessel.min.x, vessel.max.y + wall), edge);
  list.AddRectFilled(
      ImVec2(vessel.max.x, vessel.min.y), ImVec2(vessel.max.x + wall, vessel.max.y + wall), edge);
  list.AddRectFilled(
      ImVec2(vessel.min.x, vessel.max.y), ImVec2(vessel.max.x, vessel.max.y + wall), edge);
  if (it.cap_bytes) {
    const std::string cap = fmt::format("{} {}", ui::tr(S::kBucketsCap), bytes_text(*it.cap_bytes));
    const bool fits =
        ui::text_width(*font, cap) + scaled(6) <= vessel.width() && vessel.height() >= 4 * line;
    ui::draw_limit(list, {vessel, {0, 1}, capacity(bucket)}, *it.cap_bytes, fits ? cap : "");
  }
  if (selected) {
    list.AddRect(cell.min, cell.max, ui::theme().accent, 0, 0, wall);
  }
  const auto below = [&](float y, const std::string& text, ImU32 colour) {
    const std::string shown = ui::elided(*font, text, cell.width() - scaled(4));
    const float width = ui::text_width(*font, shown);
    ui::text_at(list, font, ImVec2((cell.min.x + cell.max.x - width) / 2, y), colour, shown);
  };
  const std::string title = fmt::format("{}  {}", bucket_letters(bucket), bytes_text(it.bytes));
  below(cell.max.y - 2 * line, title, ui::theme().text);
  below(cell.max.y - line, phase_text(states_[bucket]), ui::theme().muted);
}

void BucketsView::draw_vessels(app::Session& session, const ImVec2& size) {
  ImGui::BeginChild("##vessels", size, false, ImGuiWindowFlags_NoNav);
  const auto count = static_cast<int>(buckets_->buckets().size());
  // As if there were a scroll bar: columns must not change when it comes.
  const ImVec2 room(ImGui::GetWindowWidth() - ImGui::GetStyle().ScrollbarSize,
                    ImGui::GetContentRegionAvail().y);
  const int most = std::max(1, static_cast<int>(room.x / scaled(84)));
  const int rows = (count + most - 1) / most;
  const int columns = (count + rows - 1) / rows;
  const float width = std::floor(std::min(room.x / static_cast<float>(columns), scaled(150)));
  const float height =
      std::floor(std::max(scaled(76), (room.y - scaled(2)) / static_cast<float>(rows)));
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const std::optional<std::size_t> selected = selected_bucket(session);
  for (int i = 0; i < count; ++i) {
    const auto column = static_cast<float>(i % columns);
    const int line = i / columns;
    const auto row = static_cast<float>(line);
    const ImVec2 at(std::floor(origin.x + column * width), std::floor(origin.y + row * height));
    const Rect cell{at, ImVec2(at.x + width - scaled(4), at.y + height - scaled(4))};
    const auto bucket = index_of(i);
    ImGui::SetCursorScreenPos(at);
    ImGui::PushID(i);
    if (ImGui::InvisibleButton("##bucket", ImVec2(cell.width(), cell.height()))) {
      select(session, bucket);
    }
    ImGui::PopID();
    ui::tag("bucket." + bucket_letters(bucket), view::name_of(states_[bucket].phase));
    if (ImGui::IsItemVisible()) {
      draw_vessel(cell, bucket, selected == bucket);
    }
  }
  if (listed_ != now_) {
    // So does the bucket that fills up, of many.
    const auto busy = std::find_if(states_.begin(), states_.end(), [](const BucketState& it) {
      return it.phase == BucketPhase::kFilling || it.phase == BucketPhase::kInFlight;
    });
    if (busy != states_.end()) {
      const std::ptrdiff_t line = (busy - states_.begin()) / columns;
      const auto row = static_cast<float>(line);
      ImGui::SetScrollY(std::max(0.0F, (row + 0.5F) * height - ImGui::GetWindowHeight() / 2));
    }
    listed_ = now_;
  }
  ImGui::EndChild();
}

}  // namespace lockstep::views
