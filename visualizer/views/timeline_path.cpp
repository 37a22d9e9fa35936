#include "visualizer/views/timeline_path.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <imgui.h>

#include "core/report_text.h"
#include "visualizer/models/text_parts.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

using ui::S;

/// Tracks that are added for the path: more rows could not be seen.
constexpr std::size_t kMostAdded = 16;

double part_of(Nanoseconds time, Nanoseconds total) {
  return static_cast<double>(time) / static_cast<double>(std::max<Nanoseconds>(1, total));
}

std::string shown_name(const view::PathShare& share) {
  constexpr std::array<S, 5> kCauses{
      S::kSplitCompute, S::kRecompute, S::kPathCommunication, S::kPathHost, S::kPathUnexplained};
  const std::string cause = ui::tr(kCauses[static_cast<std::size_t>(share.cause)]);
  return share.group.empty() ? cause : fmt::format("{} {}", cause, share.group);
}

}  // namespace

bool TimelinePath::use(view::TimelineLanes& lanes, const std::vector<PathSegment>& path) {
  if (!on_) {
    return false;
  }
  if (!summary_) {
    summary_.emplace(lanes.index(), path);
    rows_ = 0;
  }
  if (rows_ == lanes.rows().size()) {
    return false;
  }
  const std::size_t before = lanes.rows().size();
  for (std::size_t i = 0; i < std::min(summary_->tracks().size(), kMostAdded); ++i) {
    lanes.show_track(summary_->tracks()[i]);
  }
  rows_ = lanes.rows().size();
  mark(lanes);
  return rows_ != before;
}

void TimelinePath::mark(const view::TimelineLanes& lanes) {
  marks_ = view::LaneMarks(rows_);
  chain_.clear();
  std::optional<std::size_t> last_row;
  Nanoseconds last_end = 0;
  for (const PathSegment& it : summary_->path()) {
    if (!view::ran(lanes.index(), it)) {
      continue;
    }
    const std::optional<std::size_t> row = lanes.row_of({it.track, it.operation});
    if (row) {
      marks_.add(*row, lanes.find(*row, it.operation));
      if (last_row && *last_row != *row) {
        chain_.push_back({*last_row, last_end, *row, it.begin, true});
      }
    }
    last_row = row;
    last_end = it.end;
  }
  marks_.finish();
}

void TimelinePath::add_to(LanesOverlay& overlay) const {
  if (on_ && summary_) {
    overlay.path = &marks_;
    overlay.chain = &chain_;
  }
}

std::string TimelinePath::short_text() const {
  std::string text;
  const Nanoseconds total = summary_ ? summary_->total() : 0;
  for (std::size_t i = 0; summary_ && i < summary_->shares().size(); ++i) {
    const view::PathShare& it = summary_->shares()[i];
    text += fmt::format("{}{} {}",
                        text.empty() ? "" : ", ",
                        shown_name(it),
                        view::percent_text(part_of(it.time, total)));
  }
  return text;
}

void TimelinePath::draw() const {
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg;
  if (!summary_) {
    return;
  }
  const Nanoseconds total = summary_->total();
  ImGui::TextWrapped("%s", ui::trf(S::kPathOf, view::time_text(total, true)).c_str());
  ui::tag("path.total", std::to_string(total));
  if (!ImGui::BeginTable("##path", 4, kFlags)) {
    return;
  }
  for (const S title : {S::kPathKind, S::kPathShare, S::kPathTime, S::kPathPieces}) {
    ImGui::TableSetupColumn(ui::tr(title));
  }
  ImGui::TableHeadersRow();
  for (const view::PathShare& it : summary_->shares()) {
    ImGui::TableNextRow();
    const auto column = [](const std::string& text) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(text.c_str());
    };
    column(shown_name(it));
    column(view::percent_text(part_of(it.time, total)));
    column(view::time_text(it.time, true));
    ui::tag("path." + it.name(), std::to_string(it.time));
    column(grouped(it.pieces));
  }
  ImGui::EndTable();
}

}  // namespace lockstep::views
