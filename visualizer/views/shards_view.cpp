#include "visualizer/views/shards_view.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <imgui.h>

#include "core/report_text.h"
#include "visualizer/models/shards_text.h"
#include "visualizer/models/view_json.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/readouts.h"
#include "visualizer/views/shards_parts.h"

namespace lockstep::views {
namespace {

using ui::Look;
using ui::S;
using ui::scaled;
using view::ShardInterval;
using view::ShardStage;
using view::ShardUnit;

constexpr std::size_t kMostColumns = 8;

void draw_stage_legend() {
  const auto entry = [](const Look& look, ShardStage stage, S text) {
    return ui::LegendEntry{look, view::letter_of(stage), ui::tr(text)};
  };
  ui::draw_legend(
      {entry(memory_look(Category::kParameter), ShardStage::kSharded, S::kLegendOwn),
       entry(strip_look(ShardStage::kGathering), ShardStage::kGathering, S::kLegendMoving),
       entry(strip_look(ShardStage::kGathered), ShardStage::kGathered, S::kLegendWhole),
       entry(strip_look(ShardStage::kUsed), ShardStage::kUsed, S::kLegendUsed),
       entry(strip_look(ShardStage::kFull), ShardStage::kFull, S::kLegendGradients),
       entry(reduced_look(), ShardStage::kReduced, S::kLegendReduced)});
}

std::string traffic_text(const view::ShardTraffic& traffic) {
  return ui::trf(S::kShardsTraffic, bytes_text(traffic.tensor_bytes), traffic.messages);
}

bool has_operation(const std::vector<ShardInterval>& intervals, std::uint32_t operation) {
  return std::any_of(intervals.begin(), intervals.end(), [&](const ShardInterval& it) {
    return it.operation == operation;
  });
}

}  // namespace

void ShardsView::use(const app::DocumentPtr& document) {
  if (document == document_) {
    return;
  }
  models_.clear();
  memory_.reset();
  document_ = document;
  index_ = std::make_unique<TraceIndex>(document->plan, document->shown_step());
  chooser_.use(document->shown_step());
  make_models();
}

void ShardsView::make_models() {
  const TraceTrack& track = document_->shown_step().track(chooser_.rank());
  models_.clear();
  columns_.clear();
  followed_ = -1;
  models_.push_back(std::make_unique<view::Shards>(*index_, chooser_.rank()));
  memory_ = std::make_unique<view::MemoryStack>(*index_, chooser_.rank());
  outside_ = outside_bytes(document_->memory, track.class_index);
  std::vector<Nanoseconds> events;
  for (const ShardUnit& unit : shards().units()) {
    for (const std::vector<ShardInterval>* row : {&unit.parameters, &unit.gradients}) {
      for (const ShardInterval& it : *row) {
        events.push_back(it.begin);
        events.push_back(it.end);
      }
    }
  }
  bar_.use(shards().whole(), std::move(events));
  add_columns();
}

/// The ranks that gather with the chosen one; those that did the same share a model.
void ShardsView::add_columns() {
  const TraceStep& step = document_->shown_step();
  const std::int32_t own_track = step.track_of_rank[static_cast<std::size_t>(chooser_.rank())];
  std::vector<int> group{chooser_.rank()};
  for (const ShardUnit& unit : shards().units()) {
    const auto gather =
        std::find_if(unit.parameters.begin(), unit.parameters.end(), [](const ShardInterval& it) {
          return it.operation != kNoSpan;
        });
    if (gather != unit.parameters.end()) {
      const Operation& op = index_->operation({own_track, gather->operation});
      group = members(document_->plan, index_->communicator(op), chooser_.rank());
      break;
    }
  }
  group_size_ = group.size();
  const auto own = static_cast<std::size_t>(std::find(group.begin(), group.end(), chooser_.rank()) -
                                            group.begin());
  const std::size_t count = std::min(kMostColumns, group.size());
  const std::size_t first = std::min(own, group.size() - count);
  std::map<std::int32_t, std::size_t> model_of{{own_track, 0}};
  for (std::size_t i = first; i < first + count; ++i) {
    const std::int32_t track = step.track_of_rank[static_cast<std::size_t>(group[i])];
    const auto [at, is_new] = model_of.emplace(track, models_.size());
    if (is_new) {
      models_.push_back(std::make_unique<view::Shards>(*index_, group[i]));
    }
    columns_.push_back({group[i], i, at->second});
  }
}

/// While the unit in the middle is used in backward, its neighbours are gathered and reduced.
Nanoseconds ShardsView::first_time() const {
  if (shards().units().empty()) {
    return shards().whole().from;
  }
  const ShardUnit& middle = shards().units()[shards().units().size() / 2];
  for (auto it = middle.parameters.rbegin(); it != middle.parameters.rend(); ++it) {
    if (it->stage == ShardStage::kUsed) {
      return it->begin + (it->end - it->begin) / 2;
    }
  }
  return peak_time();
}

std::optional<std::size_t> ShardsView::selected_unit(const app::Session& session) const {
  const TraceStep& step = document_->shown_step();
  if (!session.selection ||
      static_cast<std::size_t>(session.selection->rank) >= step.track_of_rank.size() ||
      &step.track(session.selection->rank) != &step.track(chooser_.rank())) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < shards().units().size(); ++i) {
    const ShardUnit& unit = shards().units()[i];
    if (has_operation(unit.parameters, session.selection->operation) ||
        has_operation(unit.gradients, session.selection->operation)) {
      return i;
    }
  }
  return std::nullopt;
}

/// Its last gather up to the time that is shown, else its first.
void ShardsView::select(app::Session& session, std::size_t unit) const {
  std::uint32_t operation = kNoSpan;
  for (const ShardInterval& it : shards().units()[unit].parameters) {
    if (it.operation != kNoSpan && (operation == kNoSpan || it.begin <= now_)) {
      operation = it.operation;
    }
  }
  if (operation != kNoSpan) {
    session.selection = app::Selection{chooser_.rank(), operation};
  }
}

void ShardsView::walk(app::Session& session) const {
  const bool back = ui::typed('[');
  if (!back && !ui::typed(']')) {
    return;
  }
  const std::optional<std::size_t> now = selected_unit(session);
  const std::size_t last = shards().units().size() - 1;
  const std::size_t next = !now ? 0 : back ? (*now == 0 ? 0 : *now - 1) : *now + 1;
  select(session, std::min(next, last));
}

void ShardsView::draw_readouts() const {
  Readouts readouts(true);
  readouts.add("shards.gathered", S::kShardsGathered, traffic_text(shards().gathers()));
  readouts.add("shards.reduced", S::kShardsReduced, traffic_text(shards().reductions()));
  const Nanoseconds exposed = shards().gathers().exposed + shards().reductions().exposed;
  readouts.add("shards.exposed", S::kShardsExposed, view::time_text(exposed, true));
}

void ShardsView::draw(ViewContext& context, bool has_keys) {
  use(context.document);
  app::Session& session = context.session;
  if (chooser_.draw(has_keys)) {
    make_models();
  }
  if (!shards().why_empty().empty()) {
    const std::string text = ui::trf(S::kShardsEmpty, ui::term(shards().why_empty()));
    ImGui::TextWrapped("%s", text.c_str());
    ui::tag("shards.empty", text);
    return;
  }
  draw_readouts();
  now_ = bar_.draw(session, first_time(), has_keys);
  states_.clear();
  for (const auto& model : models_) {
    states_.push_back(model->state(now_));
  }
  if (has_keys) {
    walk(session);
  }
  // In a low window the grid comes first: its words say what the legend would.
  const bool low = ImGui::GetContentRegionAvail().y < scaled(220);
  if (!low) {
    draw_stage_legend();
  }
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = ImGui::GetStyle().ItemSpacing.y;
  const float below = std::floor(std::clamp(room.y * 0.34F, scaled(low ? 64 : 80), scaled(170)));
  const float upper = room.y - below - gap;
  if (upper >= scaled(40)) {
    draw_grid(session, ImVec2(room.x, upper));
  }
  const MemoryPlot plot{*memory_, outside_, document_->memory.device_bytes, 2};
  const std::string peak =
      ui::trf(S::kShardsPeak, bytes_text(plot.peak_bytes()), memory_->peak_text());
  plot.draw(session, ImVec2(room.x, std::min(below, room.y)), now_, peak);
}

std::string ShardsView::text(const ViewContext& context) {
  use(context.document);
  return view::shards_text(shards(), *memory_, context.session.cursor);
}

bool ShardsView::json(JsonWriter& json, const ViewContext& context) {
  use(context.document);
  view::write_shards(json, shards(), context.cursor_in_step());
  return true;
}

void ShardsView::draw_holders() const {
  ImGui::TextUnformatted(ui::tr(S::kShardsHolders));
  const ImGuiTableFlags flags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("##holders", 4, flags)) {
    return;
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const S column :
       {S::kShardsUnit, S::kShardsParameters, S::kShardsGradients, S::kShardsMessages}) {
    ImGui::TableSetupColumn(ui::tr(column));
  }
  ImGui::TableHeadersRow();
  for (const view::PeakHolder& it : shards().peak_holders()) {
    const ShardUnit& unit = shards().units()[static_cast<std::size_t>(it.unit)];
    ImGui::TableNextRow();
    for (const std::string& cell : {unit.name,
                                    bytes_text(it.parameter_bytes),
                                    bytes_text(it.gradient_bytes),
                                    bytes_text(it.communication_bytes)}) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(cell.c_str());
    }
    ui::tag("holder." + unit.name, std::to_string(it.bytes()));
  }
  ImGui::EndTable();
}

void ShardsView::draw_intervals(std::size_t unit) const {
  const ShardUnit& it = shards().units()[unit];
  const std::string title =
      ui::trf(S::kShardsOf, it.name, bytes_text(it.gathered_bytes), bytes_text(it.shard_bytes));
  ImGui::TextWrapped("%s", title.c_str());
  ui::tag("shards.unit", it.name);
  const ImGuiTableFlags flags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("##intervals", 6, flags)) {
    return;
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const S column :
       {S::kWhat, S::kShardsStage, S::kShardsPhase, S::kFrom, S::kShardsTo, S::kShardsLength}) {
    ImGui::TableSetupColumn(ui::tr(column));
  }
  ImGui::TableHeadersRow();
  const Nanoseconds begin = shards().whole().from;
  const auto rows = [&](const std::vector<ShardInterval>& intervals, S what) {
    for (const ShardInterval& interval : intervals) {
      ImGui::TableNextRow();
      for (const std::string& cell : {std::string(ui::tr(what)),
                                      std::string(stage_text(interval.stage)),
                                      std::string(ui::term(name_of(interval.phase))),
                                      view::time_text(interval.begin - begin, true),
                                      view::time_text(interval.end - begin, true),
                                      view::time_text(interval.end - interval.begin, true)}) {
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(cell.c_str());
      }
    }
  };
  rows(it.parameters, S::kShardsParameters);
  rows(it.gradients, S::kShardsGradients);
  ImGui::EndTable();
}

void ShardsView::draw_details(ViewContext& context) {
  use(context.document);
  if (!shards().why_empty().empty()) {
    return;
  }
  if (const std::optional<std::size_t> unit = selected_unit(context.session)) {
    draw_intervals(*unit);
  } else {
    draw_holders();
  }
}

std::vector<KeyHelp> ShardsView::keys() const {
  std::vector<KeyHelp> keys = PlayBar::keys();
  keys.push_back({"[ ]", S::kKeyItem});
  keys.push_back({"", S::kKeyPoint});
  keys.push_back(RankChooser::keys());
  return keys;
}

}  // namespace lockstep::views
