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
#include "visualizer/ui/state.h"
#include "visualizer/views/buckets_parts.h"
#include "visualizer/views/readouts.h"

namespace lockstep::views {

using ui::S;
using ui::scaled;
using view::BucketLaunch;

std::string bucket_letters(std::size_t bucket) {
  std::string text(1, static_cast<char>('A' + bucket % 26));
  return bucket < 26 ? text : bucket_letters(bucket / 26 - 1) + text;
}

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
