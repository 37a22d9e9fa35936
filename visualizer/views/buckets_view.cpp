#include "visualizer/views/buckets_view.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>
#include <imgui.h>

#include "core/report_text.h"
#include "visualizer/models/buckets_text.h"
#include "visualizer/models/view_json.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/plot.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/readouts.h"

namespace lockstep::views {
namespace {

using ui::Rect;
using ui::S;
using ui::scaled;
using view::BucketLaunch;
using view::BucketPhase;
using view::BucketState;
using view::Paint;

std::size_t index_of(std::int32_t value) {
  return static_cast<std::size_t>(value);
}

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

std::string bucket_letters(std::size_t bucket) {
  std::string text(1, static_cast<char>('A' + bucket % 26));
  return bucket < 26 ? text : bucket_letters(bucket / 26 - 1) + text;
}

// ---- Model --------------------------------------------------------------------------------------

void BucketsView::use(const app::DocumentPtr& document) {
  if (document == document_) {
    return;
  }
  document_ = document;
  chooser_.use(document->shown_step());
  make_model();
}

void BucketsView::make_model() {
  buckets_.reset();
  timeline_ = std::make_unique<view::Timeline>(
      document_->plan, document_->shown_step(), std::vector<int>{chooser_.rank()});
  buckets_ = std::make_unique<view::Buckets>(
      timeline_->index(), chooser_.rank(), &document_->scenario.strategy.data);
  order_.clear();
  listed_ = -1;
  for (const view::Bucket& bucket : buckets_->buckets()) {
    order_.insert(order_.end(), bucket.members.begin(), bucket.members.end());
  }
  std::vector<Nanoseconds> events;
  for (const BucketLaunch& it : buckets_->launches()) {
    for (const view::BucketDrop& drop : it.drops) {
      events.push_back(drop.filled);
    }
    events.push_back(it.started);
    events.push_back(it.ended);
  }
  bar_.use(buckets_->whole(), std::move(events));
}

Nanoseconds BucketsView::first_time() const {
  const std::vector<BucketLaunch>& all = buckets_->launches();
  if (all.empty()) {
    return buckets_->whole().from;
  }
  const BucketLaunch& middle = all[all.size() / 2];
  return middle.started + (middle.ended - middle.started) / 2;
}

std::optional<std::size_t> BucketsView::selected_launch(const app::Session& session) const {
  if (!session.selection) {
    return std::nullopt;
  }
  const TraceStep& step = document_->shown_step();
  const auto rank = index_of(session.selection->rank);
  if (rank >= step.track_of_rank.size() ||
      step.track_of_rank[rank] != step.track_of_rank[index_of(chooser_.rank())]) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < buckets_->launches().size(); ++i) {
    if (buckets_->launches()[i].operation == session.selection->operation) {
      return i;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> BucketsView::selected_bucket(const app::Session& session) const {
  const std::optional<std::size_t> launch = selected_launch(session);
  return launch ? std::optional(index_of(buckets_->launches()[*launch].bucket)) : std::nullopt;
}

void BucketsView::select(app::Session& session, std::size_t bucket) const {
  const auto launch = index_of(states_[bucket].launch);
  session.selection = app::Selection{chooser_.rank(), buckets_->launches()[launch].operation};
}

void BucketsView::walk(app::Session& session) const {
  const bool back = ui::typed('[');
  if (!back && !ui::typed(']')) {
    return;
  }
  const std::size_t count = buckets_->buckets().size();
  const std::optional<std::size_t> now = selected_bucket(session);
  const std::size_t next = !now ? 0 : back ? (*now == 0 ? 0 : *now - 1) : *now + 1;
  select(session, std::min(next, count - 1));
}

// ---- Paint --------------------------------------------------------------------------------------

void BucketsView::draw_readouts() const {
  const view::BucketSummary& it = buckets_->summary();
  Readouts readouts(true);
  readouts.add("buckets.reductions",
               S::kBucketsReductions,
               ui::trf(S::kBucketsReductionsText, it.reductions, it.kind, it.group, it.ranks));
  readouts.add("buckets.reduced", S::kBucketsReduced, bytes_text(it.tensor_bytes));
  readouts.add("buckets.overlap", S::kBucketsOverlap, view::percent_text(it.overlap()));
  readouts.add("buckets.exposed", S::kBucketsExposed, view::time_text(it.exposed, true));
  readouts.add("buckets.tail", S::kBucketsTail, view::time_text(it.tail.length(), true));
}

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

void BucketsView::draw(ViewContext& context, bool has_keys) {
  use(context.document);
  app::Session& session = context.session;
  if (chooser_.draw(has_keys)) {
    make_model();
  }
  if (!buckets_->why_empty().empty()) {
    const std::string text = ui::trf(S::kBucketsEmpty, ui::term(buckets_->why_empty()));
    ImGui::TextWrapped("%s", text.c_str());
    ui::tag("buckets.empty", text);
    return;
  }
  draw_readouts();
  now_ = bar_.draw(session, first_time(), has_keys);
  states_ = buckets_->state(now_);
  if (has_keys) {
    walk(session);
  }
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = ImGui::GetStyle().ItemSpacing.y;
  const float lanes = std::floor(std::clamp(room.y * 0.3F, scaled(76), scaled(140)));
  const float upper = room.y - lanes - gap;
  if (upper >= scaled(40)) {
    const float list = std::floor(std::min(room.x * 0.4F, scaled(290)));
    draw_parameters(session, ImVec2(list, upper));
    ImGui::SameLine();
    draw_vessels(session, ImVec2(0, upper));
  }
  draw_lanes(session, ImVec2(room.x, std::min(lanes, room.y)));
}

std::string BucketsView::text(const ViewContext& context) {
  use(context.document);
  return view::buckets_text(*buckets_, context.session.cursor);
}

bool BucketsView::json(JsonWriter& json, const ViewContext& context) {
  use(context.document);
  view::write_buckets(json, *buckets_, context.cursor_in_step());
  return true;
}

// ---- Details ------------------------------------------------------------------------------------

view::DetailLines BucketsView::details(const ViewContext& context) {
  use(context.document);
  const std::optional<std::size_t> launch = selected_launch(context.session);
  if (!launch) {
    return {};
  }
  const BucketLaunch& it = buckets_->launches()[*launch];
  const view::Bucket& bucket = buckets_->buckets()[index_of(it.bucket)];
  const auto time = [&](Nanoseconds at) {
    return view::time_text(at - buckets_->whole().from, true);
  };
  view::DetailLines lines{{"bucket", bucket_letters(index_of(it.bucket))},
                          {"parameters in it", std::to_string(bucket.members.size())},
                          {"size", bytes_text(bucket.bytes)}};
  if (bucket.cap_bytes) {
    lines.emplace_back("cap", bytes_text(*bucket.cap_bytes));
  }
  const auto last = index_of(it.drops.back().parameter);
  lines.emplace_back("last gradient", time(it.drops.back().ready));
  lines.emplace_back("filled last by", buckets_->parameters()[last].name);
  lines.emplace_back("full", time(it.full));
  lines.emplace_back("started", time(it.started));
  lines.emplace_back("ended", time(it.ended));
  lines.emplace_back("exposed", view::time_text(it.exposed, true));
  lines.emplace_back("waited for others", view::time_text(it.started - it.arrived, true));
  lines.emplace_back("came last: rank", std::to_string(it.last_rank));
  return lines;
}

void BucketsView::draw_launches(app::Session& session) const {
  const ImGuiTableFlags flags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("##launches", 8, flags)) {
    return;
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const S column : {S::kBucketsBucket,
                         S::kMemorySize,
                         S::kBucketsCap,
                         S::kBucketsLast,
                         S::kStarted,
                         S::kEnded,
                         S::kBucketsExposed}) {
    ImGui::TableSetupColumn(ui::tr(column));
  }
  ImGui::TableSetupColumn(ui::tr(S::kBucketsBy), ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableHeadersRow();
  const Nanoseconds begin = buckets_->whole().from;
  for (std::size_t i = 0; i < buckets_->launches().size(); ++i) {
    const BucketLaunch& it = buckets_->launches()[i];
    const view::Bucket& bucket = buckets_->buckets()[index_of(it.bucket)];
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::PushID(static_cast<int>(i));
    const std::string letters = bucket_letters(index_of(it.bucket));
    if (ImGui::Selectable(letters.c_str(), false, ImGuiSelectableFlags_SpanAllColumns)) {
      session.selection = app::Selection{chooser_.rank(), it.operation};
    }
    ImGui::PopID();
    ui::tag(fmt::format("launch.{}", i), letters);
    for (const std::string& cell :
         {bytes_text(bucket.bytes),
          bucket.cap_bytes ? bytes_text(*bucket.cap_bytes) : std::string("-"),
          view::time_text(it.drops.back().ready - begin, true),
          view::time_text(it.started - begin, true),
          view::time_text(it.ended - begin, true),
          view::time_text(it.exposed, true),
          buckets_->parameters()[index_of(it.drops.back().parameter)].name}) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(cell.c_str());
    }
  }
  ImGui::EndTable();
}

void BucketsView::draw_details(ViewContext& context) {
  use(context.document);
  if (selected_launch(context.session)) {
    View::draw_details(context);
  } else if (buckets_->why_empty().empty()) {
    draw_launches(context.session);
  }
}

std::vector<KeyHelp> BucketsView::keys() const {
  std::vector<KeyHelp> keys = PlayBar::keys();
  keys.push_back({"[ ]", S::kKeyItem});
  keys.push_back({"", S::kKeyPoint});
  keys.push_back(RankChooser::keys());
  return keys;
}

}  // namespace lockstep::views
