#include "visualizer/views/timeline_areas.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <imgui.h>

#include "visualizer/models/text_parts.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

using ui::S;

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

void TimelineAreas::use(const TraceIndex& index) {
  splitter_ = std::make_unique<view::AreaSplitter>(index);
  imported_ = nullptr;
  area_.reset();
}

void TimelineAreas::use(const ImportedTrace& trace) {
  splitter_.reset();
  imported_ = &trace;
  area_.reset();
}

void TimelineAreas::draw(const view::TimeWindow& area) {
  if (imported_ != nullptr) {
    draw_busy(area);
  } else if (splitter_ != nullptr) {
    draw_split(area);
  }
}

void TimelineAreas::draw_split(const view::TimeWindow& area) {
  if (!area_ || area_->from != area.from || area_->to != area.to) {
    area_ = area;
    splits_ = splitter_->split(area);
  }
  const std::vector<view::AreaSplit>& splits = splits_;
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

void TimelineAreas::draw_busy(const view::TimeWindow& area) {
  if (!area_ || area_->from != area.from || area_->to != area.to) {
    area_ = area;
    busy_ = view::busy_times(*imported_, area);
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

}  // namespace lockstep::views
