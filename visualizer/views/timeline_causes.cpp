#include "visualizer/views/timeline_causes.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <imgui.h>

#include "visualizer/models/plan_names.h"
#include "visualizer/models/text_parts.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

using ui::S;
using view::Link;
using view::LinkKind;

/// After a host that waited, everything that it issued then has one cause.
constexpr std::size_t kMostEffects = 8;
constexpr std::size_t kMostLinks = 64;
constexpr ImGuiTableFlags kTable = ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg;

S title_of(LinkKind kind) {
  constexpr std::array<S, 5> kTitles{
      S::kLinkResult, S::kLinkStream, S::kLinkGroup, S::kLinkPeer, S::kLinkIssue};
  return kTitles[static_cast<std::size_t>(kind)];
}

bool same(const TrackOperation& a, const TrackOperation& b) {
  return a.track == b.track && a.operation == b.operation;
}

std::string rank_text(const view::TimelineLanes& lanes, std::int32_t track) {
  return view::ranks_text(lanes.index().step(), lanes.index().track(track).ranks.front());
}

std::string name_of(const view::TimelineLanes& lanes, const Link& link) {
  return link.operation.operation == kNoSpan ? ui::tr(S::kTheHost) : lanes.name(link.operation);
}

void column(const std::string& text) {
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(text.c_str());
}

std::string since_begin(const view::TimelineLanes& lanes, Nanoseconds time) {
  return view::time_text(time - lanes.whole().from, true);
}

void headers(std::initializer_list<S> titles) {
  for (const S title : titles) {
    ImGui::TableSetupColumn(ui::tr(title));
  }
  ImGui::TableHeadersRow();
}

}  // namespace

void TimelineCauses::use(const view::TimelineLanes& lanes, const TrackOperation& at, int rank) {
  if (same(at, at_) && rows_ == lanes.rows().size()) {
    return;
  }
  at_ = at;
  rows_ = lanes.rows().size();
  links_.clear();
  effects_.clear();
  arrows_.clear();
  arrivals_.clear();
  meeting_.reset();
  if (at.operation == kNoSpan) {
    return;
  }
  links_ = view::waited_for(lanes.index(), at);
  effects_ = view::determined(lanes.index(), at);
  find_arrows(lanes);
  if (view::is_message(lanes.index().operation(at))) {
    meeting_.emplace(lanes.index(), at, rank);
    find_arrivals(lanes);
  }
}

void TimelineCauses::find_arrows(const view::TimelineLanes& lanes) {
  const std::optional<std::size_t> here = lanes.row_of(at_);
  if (!here) {
    return;
  }
  const SpanTimes times = lanes.index().times(at_);
  for (std::size_t i = 0; i < std::min(links_.size(), kMostLinks); ++i) {
    const Link& link = links_[i];
    const bool shown = link.operation.operation != kNoSpan;
    const std::optional<std::size_t> row = shown ? lanes.row_of(link.operation) : std::nullopt;
    const bool own = link.kind != LinkKind::kPeer && link.kind != LinkKind::kIssue;
    if (row && (own || link.determines)) {
      arrows_.push_back({*row, link.over, *here, times.started, link.determines});
    }
  }
  for (std::size_t i = 0; i < std::min(effects_.size(), kMostEffects); ++i) {
    const bool peer = effects_[i].track != at_.track;
    if (const std::optional<std::size_t> row = lanes.row_of(effects_[i])) {
      arrows_.push_back({*here,
                         peer ? times.arrived : times.ended,
                         *row,
                         lanes.index().times(effects_[i]).started,
                         false});
    }
  }
}

void TimelineCauses::find_arrivals(const view::TimelineLanes& lanes) {
  for (const view::Arrival& it : meeting_->list()) {
    if (const std::optional<std::size_t> row = lanes.row_of(it.operation)) {
      const bool last = meeting_->spread() > 0 && it.arrived == meeting_->list().back().arrived;
      arrivals_.push_back({*row, it.arrived, it.started, last, view::time_text(it.waited(), true)});
    }
  }
}

void TimelineCauses::add_to(LanesOverlay& overlay) const {
  if (at_.operation != kNoSpan) {
    overlay.arrows = arrows_;
    overlay.arrivals = arrivals_;
  }
}

TrackOperation TimelineCauses::cause() const {
  return at_.operation != kNoSpan && !links_.empty() && links_.front().determines
             ? links_.front().operation
             : TrackOperation{};
}

TrackOperation TimelineCauses::effect() const {
  return at_.operation != kNoSpan && !effects_.empty() ? effects_.front() : TrackOperation{};
}

std::optional<TrackOperation> TimelineCauses::draw(const view::TimelineLanes& lanes) const {
  std::optional<TrackOperation> chosen;
  if (meeting_ && !meeting_->empty()) {
    draw_arrivals(lanes);
  }
  ImGui::TextUnformatted(ui::tr(links_.empty() ? S::kWaitedForNothing : S::kWaitedForThese));
  ui::tag("causes", std::to_string(links_.size()));
  if (links_.empty() || !ImGui::BeginTable("##causes", 5, kTable)) {
    return chosen;
  }
  ImGui::TableSetupColumn(ui::tr(S::kCauseWhat), ImGuiTableColumnFlags_WidthStretch);
  headers({S::kCauseWhy, S::kSplitRank, S::kCauseOver, S::kCauseSlack});
  for (std::size_t i = 0; i < std::min(links_.size(), kMostLinks); ++i) {
    const Link& link = links_[i];
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const std::string name = name_of(lanes, link);
    const bool can_go = link.operation.operation != kNoSpan;
    const ImGuiSelectableFlags flags =
        can_go ? ImGuiSelectableFlags_SpanAllColumns : ImGuiSelectableFlags_Disabled;
    ImGui::PushStyleColor(ImGuiCol_TextDisabled, ui::theme().text);
    if (ImGui::Selectable(fmt::format("{}##{}", name, i).c_str(), false, flags)) {
      chosen = link.operation;
    }
    ImGui::PopStyleColor();
    ui::tag(fmt::format("cause.{}", i), name, can_go);
    column(ui::tr(title_of(link.kind)));
    column(rank_text(lanes, link.operation.track));
    column(since_begin(lanes, link.over));
    column(link.determines ? std::string(ui::tr(S::kCauseLast))
                           : view::time_text(link.slack, true));
    ui::tag(fmt::format("cause.{}.slack", i), std::to_string(link.slack));
  }
  ImGui::EndTable();
  return chosen;
}

void TimelineCauses::draw_arrivals(const view::TimelineLanes& lanes) const {
  const view::Arrivals& meeting = *meeting_;
  const view::Arrival& last = meeting.list().back();
  const std::string text = meeting.spread() == 0 ? ui::trf(S::kArrivedTogether, meeting.members())
                                                 : ui::trf(S::kArrivedLast,
                                                           rank_text(lanes, last.operation.track),
                                                           view::time_text(meeting.spread(), true),
                                                           view::time_text(meeting.waited(), true));
  ImGui::TextWrapped("%s", text.c_str());
  ui::tag("arrivals", text);
  if (!ImGui::BeginTable("##arrivals", 4, kTable)) {
    return;
  }
  headers({S::kSplitRank, S::kReady, S::kWaitedFor, S::kStarted});
  for (const view::Arrival& it : meeting.list()) {
    ImGui::TableNextRow();
    const std::string rank =
        it.count > 1 ? fmt::format("{} (x {})", it.rank, it.count) : std::to_string(it.rank);
    column(rank);
    column(since_begin(lanes, it.arrived));
    ui::tag(fmt::format("arrival.{}", it.rank), std::to_string(it.arrived));
    const bool is_last = it.arrived == last.arrived && meeting.spread() > 0;
    column(is_last ? std::string(ui::tr(S::kCauseLast)) : view::time_text(it.waited(), true));
    column(since_begin(lanes, it.started));
  }
  ImGui::EndTable();
}

view::DetailLines TimelineCauses::lines(const view::TimelineLanes& lanes) const {
  view::DetailLines lines;
  if (meeting_ && !meeting_->empty()) {
    lines.emplace_back("arrivals", view::arrivals_text(*meeting_));
  }
  for (const Link& link : links_) {
    const std::string slack =
        link.determines ? "last" : fmt::format("slack {}", view::time_text(link.slack));
    lines.emplace_back(
        fmt::format("waited for {}", view::name_of(link.kind)),
        fmt::format("{}, {}, over at {}, {}",
                    link.operation.operation == kNoSpan ? "the host" : lanes.name(link.operation),
                    rank_text(lanes, link.operation.track),
                    view::time_text(link.over - lanes.whole().from),
                    slack));
  }
  return lines;
}

std::vector<KeyHelp> TimelineCauses::keys() {
  return {{"[", S::kKeyCause}, {"]", S::kKeyEffect}};
}

}  // namespace lockstep::views
