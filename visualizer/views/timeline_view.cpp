#include "visualizer/views/timeline_view.h"

#include <algorithm>

#include <fmt/format.h>
#include <imgui.h>

#include "visualizer/models/path_summary.h"
#include "visualizer/models/timeline_svg.h"
#include "visualizer/models/timeline_text.h"
#include "visualizer/models/view_json.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/paint_legend.h"

namespace lockstep::views {
namespace {

using ui::S;
using ui::scaled;

constexpr int kMostRanks = 16;

}  // namespace

TimelineView::TimelineView() {
  pane_.set_walk_keys(',', '.');  // brackets follow dependencies
}

// ---- What is shown ------------------------------------------------------------------------------

void TimelineView::use(const app::DocumentPtr& document) {
  if (document == document_) {
    return;
  }
  plan_lanes_ = nullptr;
  imported_ = nullptr;
  causes_.forget();
  path_.forget();
  if (document->imported != nullptr) {
    show_imported(*document->imported);
  } else {
    show_plan(*document);
  }
  find_.use(lanes_.get());
  document_ = document;  // the former one goes only now: the former lanes were of it
}

void TimelineView::show_plan(const app::Document& document) {
  const TraceStep& step = document.shown_step();
  auto lanes = std::make_unique<view::TimelineLanes>(
      document.plan, step, view::usual_ranks(step, kMostRanks));
  pane_.show(lanes.get());
  plan_lanes_ = lanes.get();
  areas_.use(lanes->index());
  lanes_ = std::move(lanes);
}

void TimelineView::show_imported(const ImportedTrace& trace) {
  auto lanes = std::make_unique<view::ImportedLanes>(trace);
  pane_.show(lanes.get());
  imported_ = lanes.get();
  areas_.use(trace);
  lanes_ = std::move(lanes);
}

void TimelineView::count_rows() {
  pane_.count_rows();
  find_.use(lanes_.get());
}

std::optional<LanesBoxRef> TimelineView::box_of(std::size_t row, std::uint32_t item) const {
  const view::LaneBox box = lanes_->find(row, item);
  return box.count > 0 ? std::optional(LanesBoxRef{row, box}) : std::nullopt;
}

/// Of a rank whose row is another one's, which did the same at the same times: there.
std::optional<LanesBoxRef> TimelineView::box_of(const app::Selection& selection) const {
  std::int32_t rank = selection.rank;
  if (plan_lanes_ != nullptr) {
    const TraceStep& step = plan_lanes_->index().step();
    if (rank < 0 || static_cast<std::size_t>(rank) >= step.track_of_rank.size()) {
      return std::nullopt;
    }
    rank = step.track(rank).ranks.front();
  }
  for (std::size_t row = 0; row < lanes_->rows().size(); ++row) {
    if (lanes_->rows()[row].rank != rank) {
      continue;
    }
    if (const std::optional<LanesBoxRef> box = box_of(row, selection.operation)) {
      return box;
    }
  }
  return std::nullopt;
}

// ---- Picture ------------------------------------------------------------------------------------

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
  draw_bar(context, choice, has_keys);
  LanesOverlay overlay;
  overlay.found = find_.marks();
  if (plan_lanes_ != nullptr) {
    if (path_.use(*plan_lanes_, context.document->report.path)) {
      count_rows();
    }
    path_.add_to(overlay);
    find_causes(choice.selected);
    follow(choice, has_keys);
    causes_.add_to(overlay);
  }
  pane_.draw(choice, has_keys, overlay);
  session.area = choice.area;
  session.cursor = choice.cursor;
  session.selection.reset();
  if (choice.selected) {
    session.selection =
        app::Selection{lanes_->rows()[choice.selected->row].rank, choice.selected->box.item};
  }
}

void TimelineView::draw_toggle(bool has_keys) {
  bool on = path_.is_on();
  if (ImGui::Checkbox(ui::tr(S::kCriticalPath), &on)) {
    path_.set_on(on);
  }
  ui::tag("timeline.path", path_.is_on() ? "on" : "");
  if (has_keys && ui::chord(ui::Key::kK, ui::kPlain)) {
    path_.set_on(!path_.is_on());
  }
  ImGui::SameLine();
}

void TimelineView::draw_bar(ViewContext& context, LanesChoice& choice, bool has_keys) {
  if (plan_lanes_ != nullptr) {
    draw_toggle(has_keys);
  }
  if (const auto found = find_.draw(choice.selected, pane_.window().from, has_keys)) {
    choice.selected = box_of(found->row, found->item);
    if (choice.selected) {
      pane_.reveal(*choice.selected);
    }
  }
  context.session.playing = context.session.playing || find_.is_reading();
  draw_steps(context, has_keys);
  if (plan_lanes_ == nullptr || !path_.is_on()) {
    return;
  }
  ImGui::SameLine(0, scaled(14));
  ImGui::AlignTextToFramePadding();
  const std::string text =
      ui::elided(*ui::state().fonts.text, path_.short_text(), ImGui::GetContentRegionAvail().x);
  ImGui::TextUnformatted(text.c_str());
}

void TimelineView::draw_steps(ViewContext& context, bool has_keys) {
  const app::Document& document = *context.document;
  const auto count = static_cast<int>(document.trace.steps.size());
  if (count < 2) {
    return;
  }
  int wanted = document.step;
  const auto button = [&](const char* label, const char* tag, int step, char32_t key) {
    const bool can = step >= 0 && step < count;
    ImGui::SameLine();
    ImGui::BeginDisabled(!can);
    const bool hit = ImGui::Button(fmt::format("{}##{}", label, tag).c_str());
    ImGui::EndDisabled();
    ui::tag(tag, "", can);
    wanted = can && (hit || (has_keys && ui::typed(key))) ? step : wanted;
  };
  button("\xE2\x86\x90", "timeline.step.previous", document.step - 1, '{');
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  const std::string text = ui::trf(S::kStepOf, document.step + 1, count);
  ImGui::TextUnformatted(text.c_str());
  ui::tag("timeline.step", std::to_string(document.step));
  button("\xE2\x86\x92", "timeline.step.next", document.step + 1, '}');
  if (wanted != document.step) {
    context.session.show_step(wanted);
  }
}

// ---- Causes -------------------------------------------------------------------------------------

void TimelineView::find_causes(const std::optional<LanesBoxRef>& selected) {
  if (!selected) {
    causes_.use(*plan_lanes_, {}, 0);
    return;
  }
  causes_.use(*plan_lanes_,
              plan_lanes_->operation_at(selected->row, selected->box.item),
              plan_lanes_->rows()[selected->row].rank);
}

void TimelineView::follow(LanesChoice& choice, bool has_keys) {
  const bool back = has_keys && ui::typed('[');
  const bool forward = has_keys && ui::typed(']');
  if (!back && !forward) {
    return;
  }
  go_to(choice, back ? causes_.cause() : causes_.effect());
  find_causes(choice.selected);
}

/// Ranks that had no row get one.
void TimelineView::go_to(LanesChoice& choice, const TrackOperation& target) {
  if (target.operation == kNoSpan) {
    return;
  }
  const std::size_t before = lanes_->rows().size();
  plan_lanes_->show_track(target.track);
  if (lanes_->rows().size() != before) {
    count_rows();
  }
  if (const std::optional<std::size_t> row = plan_lanes_->row_of(target)) {
    choice.selected = box_of(*row, target.operation);
    if (choice.selected) {
      pane_.reveal(*choice.selected);
    }
  }
}

// ---- Text ---------------------------------------------------------------------------------------

std::string TimelineView::text(const ViewContext& context) {
  use(context.document);
  if (imported_ != nullptr) {
    return view::imported_text(*imported_);
  }
  view::TimelineTextOptions options;
  options.utf8 = false;  // the window's font has no block characters
  options.path = true;
  std::string text =
      view::timeline_text(context.document->plan, context.document->shown_step(), options);
  for (const auto& [name, value] : details(context)) {
    text += fmt::format("{}: {}\n", name, value);
  }
  return text;
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
  if (!at) {
    return {};
  }
  view::DetailLines lines = lanes_->details(at->row, at->box);
  if (plan_lanes_ != nullptr) {
    find_causes(at);
    const view::DetailLines causes = causes_.lines(*plan_lanes_);
    lines.insert(lines.end(), causes.begin(), causes.end());
  }
  return lines;
}

// ---- Below --------------------------------------------------------------------------------------

void TimelineView::draw_selection(ViewContext& context) {
  const std::optional<LanesBoxRef> at = box_of(*context.session.selection);
  if (!at) {
    return;
  }
  const float width = ImGui::GetContentRegionAvail().x;
  const bool beside = plan_lanes_ != nullptr && width > scaled(600);
  if (beside) {
    ImGui::BeginChild("##what", ImVec2(std::floor(width * 0.36F), 0));
  }
  draw_detail_lines(lanes_->details(at->row, at->box));
  if (beside) {
    ImGui::EndChild();
    ImGui::SameLine();
    ImGui::BeginChild("##why");
  }
  if (plan_lanes_ != nullptr) {
    find_causes(at);
    if (const std::optional<TrackOperation> chosen = causes_.draw(*plan_lanes_)) {
      LanesChoice choice;
      go_to(choice, *chosen);
      if (choice.selected) {
        context.session.selection =
            app::Selection{lanes_->rows()[choice.selected->row].rank, choice.selected->box.item};
      }
    }
  }
  if (beside) {
    ImGui::EndChild();
  }
}

void TimelineView::draw_details(ViewContext& context) {
  use(context.document);
  if (context.session.selection) {
    draw_selection(context);
    return;
  }
  const view::TimeWindow area = context.session.area.value_or(lanes_->whole());
  if (path_.is_on() && plan_lanes_ != nullptr && !context.session.area) {
    path_.draw();
    ImGui::Spacing();
  }
  std::string title = ui::tr(S::kWhereTimeGoes);
  if (context.session.area) {
    title = ui::trf(S::kTimelineSelection,
                    view::time_text(area.length(), true),
                    view::time_text(area.from - lanes_->whole().from, true),
                    view::time_text(area.to - lanes_->whole().from, true));
  }
  ImGui::TextUnformatted(title.c_str());
  ui::tag("timeline.area", std::to_string(area.length()));
  areas_.draw(area);
}

std::vector<KeyHelp> TimelineView::keys() const {
  std::vector<KeyHelp> keys{
      {ui::trf(S::kKeyWheel, "W S"), S::kKeyZoom},
      {ui::trf(S::kKeyShiftDrag, "A D \xE2\x86\x90 \xE2\x86\x92"), S::kKeyPan},
      {ui::tr(S::kKeyDrag), S::kKeyArea},
      {"F", S::kFit},
      {"Z", S::kZoomSelection},
      {", .", S::kKeyWalk}};
  for (const auto& more : {TimelineCauses::keys(), FindBar::keys()}) {
    keys.insert(keys.end(), more.begin(), more.end());
  }
  keys.push_back({"K", S::kCriticalPath});
  keys.push_back({"{ }", S::kKeySteps});
  return keys;
}

}  // namespace lockstep::views
