#include "visualizer/views/timeline_view.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "visualizer/models/timeline_svg.h"
#include "visualizer/models/timeline_text.h"
#include "visualizer/models/view_json.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

using ui::S;

constexpr int kMostRanks = 16;

struct SplitColumn {
  TimeKind kind;
  S title;
};
constexpr std::array<SplitColumn, view::kTimeKindCount> kSplitColumns{
    {{TimeKind::kCompute, S::kSplitCompute},
     {TimeKind::kRecompute, S::kRecompute},
     {TimeKind::kExposed, S::kSplitExposed},
     {TimeKind::kWaiting, S::kWaiting},
     {TimeKind::kBubble, S::kSplitBubble},
     {TimeKind::kHost, S::kSplitHost},
     {TimeKind::kIdle, S::kSplitIdle}}};

/// Columns that some rank has time in: a twentieth of a percent is shown as zero.
std::vector<SplitColumn> used_columns(const std::vector<view::AreaSplit>& splits,
                                      Nanoseconds length) {
  std::vector<SplitColumn> columns;
  for (const SplitColumn& column : kSplitColumns) {
    const bool used = std::any_of(splits.begin(), splits.end(), [&](const view::AreaSplit& it) {
      return it.of(column.kind) * 2000 > length;
    });
    if (used) {
      columns.push_back(column);
    }
  }
  return columns;
}

}  // namespace

void TimelineView::use(const app::DocumentPtr& document) {
  if (document == document_) {
    return;
  }
  splitter_.reset();
  imported_ = nullptr;
  busy_area_.reset();
  if (document->imported != nullptr) {
    show_imported(*document->imported);
  } else {
    show_plan(*document);
  }
  document_ = document;  // the former one goes only now: the former lanes were of it
}

void TimelineView::show_plan(const app::Document& document) {
  const TraceStep& step = document.shown_step();
  auto lanes = std::make_unique<view::TimelineLanes>(
      document.plan, step, view::usual_ranks(step, kMostRanks));
  pane_.show(lanes.get());
  splitter_ = std::make_unique<view::AreaSplitter>(lanes->timeline().index());
  lanes_ = std::move(lanes);
}

void TimelineView::show_imported(const ImportedTrace& trace) {
  auto lanes = std::make_unique<view::ImportedLanes>(trace);
  pane_.show(lanes.get());
  imported_ = lanes.get();
  lanes_ = std::move(lanes);
}

std::optional<LanesBoxRef> TimelineView::box_of(const app::Selection& selection) const {
  for (std::size_t row = 0; row < lanes_->rows().size(); ++row) {
    if (lanes_->rows()[row].rank != selection.rank) {
      continue;
    }
    const view::LaneBox box = lanes_->find(row, selection.operation);
    if (box.count > 0) {
      return LanesBoxRef{row, box};
    }
  }
  return std::nullopt;
}

void TimelineView::draw(ViewContext& context, bool has_keys) {
  use(context.document);
  draw_paint_legend(*lanes_);
  app::Session& session = context.session;
  LanesChoice choice;
  choice.area = session.area;
  choice.cursor = session.cursor;
  if (session.selection) {
    choice.selected = box_of(*session.selection);
  }
  pane_.draw(choice, has_keys);
  session.area = choice.area;
  session.cursor = choice.cursor;
  session.selection.reset();
  if (choice.selected) {
    session.selection =
        app::Selection{lanes_->rows()[choice.selected->row].rank, choice.selected->box.item};
  }
}

std::string TimelineView::text(const ViewContext& context) {
  use(context.document);
  if (imported_ != nullptr) {
    return view::imported_text(*imported_);
  }
  view::TimelineTextOptions options;
  options.utf8 = false;  // the window's font has no block characters
  return view::timeline_text(context.document->plan, context.document->shown_step(), options);
}

bool TimelineView::json(JsonWriter& json, const ViewContext& context) {
  if (context.document->imported != nullptr) {
    return false;
  }
  const TraceStep& step = context.document->shown_step();
  view::write_timeline(json, {context.document->plan, step, view::usual_ranks(step, kMostRanks)});
  return true;
}

std::string TimelineView::svg(const ViewContext& context) {
  if (context.document->imported != nullptr) {
    return "";
  }
  const TraceStep& step = context.document->shown_step();
  return view::timeline_svg({context.document->plan, step, view::usual_ranks(step, kMostRanks)});
}

view::DetailLines TimelineView::details(const ViewContext& context) {
  use(context.document);
  if (!context.session.selection) {
    return {};
  }
  const std::optional<LanesBoxRef> at = box_of(*context.session.selection);
  return at ? lanes_->details(at->row, at->box) : view::DetailLines{};
}

void TimelineView::draw_split(const view::TimeWindow& area) const {
  const std::vector<view::AreaSplit> splits = splitter_->split(area);
  const std::vector<SplitColumn> columns = used_columns(splits, area.length());
  const ImGuiTableFlags flags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("##split", static_cast<int>(columns.size()) + 1, flags)) {
    return;
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn(ui::tr(S::kSplitRank));
  for (const SplitColumn& column : columns) {
    ImGui::TableSetupColumn(ui::tr(column.title));
  }
  ImGui::TableHeadersRow();
  const auto length = static_cast<double>(std::max<Nanoseconds>(1, area.length()));
  for (const view::AreaSplit& split : splits) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const std::string ranks = split.count > 1 ? fmt::format("{} (x {})", split.rank, split.count)
                                              : std::to_string(split.rank);
    ImGui::TextUnformatted(ranks.c_str());
    for (const SplitColumn& column : columns) {
      ImGui::TableNextColumn();
      const Nanoseconds time = split.of(column.kind);
      const std::string text = fmt::format(
          "{:5.1f} %  {}", 100 * static_cast<double>(time) / length, view::time_text(time, true));
      ImGui::TextUnformatted(text.c_str());
      ui::tag(fmt::format("split.{}.{}", split.rank, name_of(column.kind)), std::to_string(time));
    }
  }
  ImGui::EndTable();
}

void TimelineView::draw_busy(const view::TimeWindow& area) {
  if (!busy_area_ || busy_area_->from != area.from || busy_area_->to != area.to) {
    busy_area_ = area;
    busy_ = view::busy_times(imported_->trace(), area);
  }
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("##busy", 5, kFlags)) {
    return;
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const S title : {S::kSplitRank,
                        S::kImportedColumnKernels,
                        S::kImportedColumnTransfers,
                        S::kSplitExposed,
                        S::kSplitHost}) {
    ImGui::TableSetupColumn(ui::tr(title));
  }
  ImGui::TableHeadersRow();
  const auto length = static_cast<double>(std::max<Nanoseconds>(1, area.length()));
  const auto cell = [&](const std::string& rank, const char* name, bool known, Nanoseconds time) {
    ImGui::TableNextColumn();
    const std::string text = known ? fmt::format("{:5.1f} %  {}",
                                                 100 * static_cast<double>(time) / length,
                                                 view::time_text(time, true))
                                   : "-";
    ImGui::TextUnformatted(text.c_str());
    ui::tag(fmt::format("busy.{}.{}", rank, name), known ? std::to_string(time) : "");
  };
  for (const view::ImportedBusy& it : busy_) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(it.rank.c_str());
    cell(it.rank, "kernels", it.has_kernels, it.kernels);
    cell(it.rank, "transfers", it.has_transfers, it.transfers);
    cell(it.rank, "exposed", it.has_transfers && it.has_kernels, it.exposed);
    cell(it.rank, "host", true, it.host);
  }
  ImGui::EndTable();
}

void TimelineView::draw_details(ViewContext& context) {
  use(context.document);
  if (context.session.selection) {
    View::draw_details(context);
    return;
  }
  const view::TimeWindow area = context.session.area.value_or(lanes_->whole());
  std::string title = ui::tr(S::kWhereTimeGoes);
  if (context.session.area) {
    title = ui::trf(S::kTimelineSelection,
                    view::time_text(area.length(), true),
                    view::time_text(area.from - lanes_->whole().from, true),
                    view::time_text(area.to - lanes_->whole().from, true));
  }
  ImGui::TextUnformatted(title.c_str());
  ui::tag("timeline.area", std::to_string(area.length()));
  if (imported_ != nullptr) {
    draw_busy(area);
  } else {
    draw_split(area);
  }
}

std::vector<KeyHelp> TimelineView::keys() const {
  return {{ui::trf(S::kKeyWheel, "W S"), S::kKeyZoom},
          {ui::trf(S::kKeyShiftDrag, "A D \xE2\x86\x90 \xE2\x86\x92"), S::kKeyPan},
          {ui::tr(S::kKeyDrag), S::kKeyArea},
          {"F", S::kFit},
          {"Z", S::kZoomSelection},
          {"[ ]", S::kKeyWalk}};
}

}  // namespace lockstep::views
