#include "visualizer/views/compare_view.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "core/names.h"
#include "visualizer/models/comparison_text.h"
#include "visualizer/models/timeline_text.h"
#include "visualizer/models/view_json.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/compare_parts.h"
#include "visualizer/views/paint_legend.h"

namespace lockstep::views {
namespace {

using ui::S;
using ui::scaled;
using view::Comparison;
using view::OperationDifference;
using view::Sync;
using view::TimeWindow;

constexpr int kMostRanks = 3;  ///< of each: two timelines share the height

constexpr std::array<S, 3> kSyncs{S::kCompareSyncTime, S::kCompareSyncBegin, S::kCompareSyncWhole};

void muted_text(const std::string& text) {
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
  ImGui::TextWrapped("%s", text.c_str());
  ImGui::PopStyleColor();
}

std::string name_of(const app::Document& document) {
  std::string name =
      document.scenario.name.empty() ? document.scenario.model.name : document.scenario.name;
  const bool simulated = document.trace.source == TraceSource::kSimulated;
  return fmt::format("{}, {} {}, {}",
                     name,
                     lockstep::name_of(document.scenario.strategy.data.kind),
                     document.scenario.strategy.world_size(),
                     ui::tr(simulated ? S::kSimulated : S::kMeasured));
}

bool same(const TimeWindow& a, const TimeWindow& b) {
  return a.from == b.from && a.to == b.to;
}

}  // namespace

CompareView::CompareView() {
  a_.pane.set_name("compare.a");
  b_.pane.set_name("compare.b");
}

bool CompareView::use(const ViewContext& context) {
  const app::DocumentPtr& b = context.document;
  const app::DocumentPtr& a = context.session.baseline();
  const bool measured = b->trace.source != TraceSource::kSimulated;
  if ((a == nullptr && !measured) || a == b) {
    errand_.reset();
    compared_.reset();
    return false;
  }
  if (errand_ == nullptr || errand_->asked_a() != a || errand_->asked_b() != b) {
    errand_ = std::make_shared<app::CompareErrand>(a, b);
    context.session.add(errand_);
  }
  const std::shared_ptr<const app::Compared> result = errand_->result();
  if (result != nullptr && result != compared_) {
    show(result);
  }
  // While a newer one is computed, what is shown is of other documents.
  return compared_ != nullptr && compared_ == result && compared_->comparison != nullptr;
}

void CompareView::show(std::shared_ptr<const app::Compared> compared) {
  const auto lanes_of = [](const app::Document& document) {
    const TraceStep& step = document.shown_step();
    return std::make_unique<view::TimelineLanes>(
        document.plan, step, view::usual_ranks(step, kMostRanks));
  };
  const std::shared_ptr<const app::Compared> former = std::exchange(compared_, std::move(compared));
  if (compared_->comparison == nullptr) {
    return;
  }
  std::unique_ptr<view::TimelineLanes> a = lanes_of(*compared_->a);
  std::unique_ptr<view::TimelineLanes> b = lanes_of(*compared_->b);
  a_.pane.show(a.get());
  b_.pane.show(b.get());
  a_.lanes = std::move(a);
  b_.lanes = std::move(b);
  set_sync(sync_);
}

void CompareView::set_sync(Sync sync) {
  sync_ = sync;
  const TimeWindow a = a_.lanes->whole();
  const TimeWindow b = b_.lanes->whole();
  const Nanoseconds longest = std::max(a.length(), b.length());
  switch (sync) {
    case Sync::kSameTime: {
      const TimeWindow both{std::min(a.from, b.from), std::max(a.to, b.to)};
      a_.pane.set_limits(both);
      b_.pane.set_limits(both);
      break;
    }
    case Sync::kStepBegin:  // equal lengths are equally wide
      a_.pane.set_limits({a.from, a.from + longest});
      b_.pane.set_limits({b.from, b.from + longest});
      break;
    case Sync::kWholeStep:
      a_.pane.set_limits(a);
      b_.pane.set_limits(b);
      break;
  }
  a_.pane.fit();
  b_.pane.fit();
}

void CompareView::synchronise(bool from_b) {
  const Comparison& it = *compared_->comparison;
  if (from_b) {
    a_.pane.set_window(it.in_a(b_.pane.window(), sync_));
  } else {
    b_.pane.set_window(it.in_b(a_.pane.window(), sync_));
  }
}

std::optional<std::size_t> CompareView::chosen(const app::Session& session) const {
  return session.selection
             ? compared_->with_b(session.selection->rank, session.selection->operation)
             : std::nullopt;
}

std::optional<LanesBoxRef> CompareView::box_of(const Side& side,
                                               std::int32_t rank,
                                               std::uint32_t item) const {
  for (std::size_t row = 0; row < side.lanes->rows().size(); ++row) {
    if (side.lanes->rows()[row].rank == rank) {
      const view::LaneBox box = side.lanes->find(row, item);
      if (box.count > 0) {
        return LanesBoxRef{row, box};
      }
    }
  }
  return std::nullopt;
}

void CompareView::walk(ViewContext& context, int direction) {
  const std::vector<OperationDifference>& all = compared_->comparison->differences();
  if (all.empty()) {
    return;
  }
  const std::optional<std::size_t> now = chosen(context.session);
  std::size_t next = 0;
  if (now) {
    next = direction > 0 ? std::min(*now + 1, all.size() - 1) : *now - (*now > 0 ? 1 : 0);
  }
  context.session.selection = app::Selection{all[next].rank, all[next].b_operation};
  scroll_to_chosen_ = true;
}

void CompareView::draw_empty(ViewContext& context, S why) {
  ImGui::Dummy(ImVec2(1, scaled(10)));
  ImGui::TextWrapped("%s", ui::tr(why));
  ui::tag("compare.empty", ui::tr(why));
  ImGui::Dummy(ImVec2(1, scaled(6)));
  if (why == S::kCompareHow) {
    if (ImGui::Button(ui::tr(S::kPin))) {
      context.session.pin();
    }
    ui::tag("compare.pin");
    ImGui::SameLine();
  }
  if (ImGui::Button(fmt::format("{}...", ui::tr(S::kCompareOpen)).c_str())) {
    context.session.asks_for_baseline = true;
  }
  ui::tag("compare.open");
}

void CompareView::draw_head() {
  const Comparison& it = *compared_->comparison;
  const Nanoseconds difference = it.b_length() - it.a_length();
  const double part = static_cast<double>(difference) /
                      static_cast<double>(std::max<Nanoseconds>(1, it.a_length()));
  ImGui::TextWrapped(
      "A: %s, %s", name_of(*compared_->a).c_str(), view::time_text(it.a_length(), true).c_str());
  ImGui::TextWrapped(
      "B: %s, %s", name_of(*compared_->b).c_str(), view::time_text(it.b_length(), true).c_str());
  ImGui::SameLine();
  ImGui::TextUnformatted("  B - A:");
  ImGui::SameLine();
  difference_text(difference);
  ui::tag("compare.difference", std::to_string(difference));
  ImGui::SameLine();
  ImGui::TextUnformatted(fmt::format("({:+.1f} %)", 100 * part).c_str());
  if (errand_->asked_a() == nullptr) {
    muted_text(ui::tr(S::kCompareSimulatedA));
  }
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(ui::tr(S::kCompareSync));
  for (std::size_t i = 0; i < kSyncs.size(); ++i) {
    ImGui::SameLine();
    const bool current = static_cast<std::size_t>(sync_) == i;
    if (ImGui::RadioButton(ui::tr(kSyncs[i]), current)) {
      set_sync(static_cast<Sync>(i));
    }
    ui::tag(fmt::format("compare.sync.{}", i), current ? "current" : "");
  }
  ImGui::SameLine();
  if (ImGui::GetContentRegionAvail().x < scaled(240)) {
    ImGui::NewLine();
  }
  draw_paint_legend(*b_.lanes);
}

void CompareView::draw_side(ViewContext& context, bool is_b, float height, bool has_keys) {
  constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoScrollbar |
                                      ImGuiWindowFlags_NoScrollWithMouse |
                                      ImGuiWindowFlags_NoNavInputs;
  Side& side = is_b ? b_ : a_;
  app::Session& session = context.session;
  ImGui::BeginChild(is_b ? "##b" : "##a", ImVec2(0, height), false, kFlags);
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  LanesChoice choice;
  const std::optional<std::size_t> difference = chosen(session);
  if (is_b && session.selection) {
    choice.selected = box_of(side, session.selection->rank, session.selection->operation);
  } else if (difference) {
    const OperationDifference& it = compared_->comparison->differences()[*difference];
    choice.selected = box_of(side, it.rank, it.a_operation);
  }
  const std::optional<LanesBoxRef> before = choice.selected;
  const TimeWindow window = side.pane.window();
  side.pane.draw(choice, has_keys);
  if (!same(window, side.pane.window())) {
    synchronise(is_b);
  }
  const bool moved = choice.selected && (!before || before->row != choice.selected->row ||
                                         before->box.item != choice.selected->box.item);
  if (moved) {
    const std::int32_t rank = side.lanes->rows()[choice.selected->row].rank;
    const std::uint32_t item = choice.selected->box.item;
    const std::optional<std::size_t> partner = is_b ? std::nullopt : compared_->with_a(rank, item);
    if (is_b) {
      session.selection = app::Selection{rank, item};
    } else if (partner) {
      session.selection =
          app::Selection{rank, compared_->comparison->differences()[*partner].b_operation};
    } else {
      session.selection.reset();
    }
    scroll_to_chosen_ = true;
  } else if (before && !choice.selected) {
    session.selection.reset();
  }
  ui::text_at(*ImGui::GetWindowDrawList(),
              ui::state().fonts.large,
              corner,
              ui::theme().accent,
              is_b ? "B" : "A");
  ImGui::EndChild();
}

void CompareView::draw(ViewContext& context, bool has_keys) {
  if (!use(context)) {
    if (errand_ == nullptr) {
      draw_empty(context, context.session.baseline() == nullptr ? S::kCompareHow : S::kCompareSame);
    } else if (compared_ != nullptr && !compared_->error.empty()) {
      muted_text(ui::trf(S::kCompareFailed, compared_->error));
      ui::tag("compare.failed", compared_->error);
    } else {
      muted_text(ui::tr(S::kCompareBusy));
      ui::tag("compare.busy");
    }
    return;
  }
  if (has_keys && ui::typed(',')) {
    walk(context, -1);
  }
  if (has_keys && ui::typed('.')) {
    walk(context, 1);
  }
  if (has_keys && ui::chord(ui::Key::kY, ui::kPlain)) {
    set_sync(static_cast<Sync>((static_cast<std::size_t>(sync_) + 1) % kSyncs.size()));
  }
  draw_head();
  const float free = ImGui::GetContentRegionAvail().y;
  const float spacing = ImGui::GetStyle().ItemSpacing.y;
  const float side = std::floor(std::max(scaled(95), (free * 0.68F - 2 * spacing) / 2));
  const ImVec2 top = ImGui::GetCursorScreenPos();
  const float labels = std::max(a_.pane.label_width(), b_.pane.label_width());
  a_.pane.set_least_label_width(labels);
  b_.pane.set_least_label_width(labels);
  // Keys move the timeline under the mouse, else A; the other one follows.
  const bool over_b = ImGui::GetIO().MousePos.y >= top.y + side + spacing &&
                      ImGui::GetIO().MousePos.y < top.y + 2 * side + spacing;
  draw_side(context, false, side, has_keys && !over_b);
  draw_side(context, true, side, has_keys && over_b);
  draw_differences(context);
}

void CompareView::draw_details(ViewContext& context) {
  if (!use(context)) {
    return;
  }
  if (context.session.selection) {
    View::draw_details(context);
    return;
  }
  const Comparison& it = *compared_->comparison;
  const float width = ImGui::GetContentRegionAvail().x / 2;
  ImGui::BeginChild("##split", ImVec2(width, 0));
  draw_sums("##sums", S::kCompareSplit, it.split());
  ImGui::EndChild();
  ImGui::SameLine();
  ImGui::BeginChild("##families");
  draw_sums("##sums", S::kCompareFamilies, it.families());
  if (it.ranks_without_partner() > 0) {
    muted_text(ui::trf(S::kCompareWithoutPartner, it.ranks_without_partner()));
  }
  ImGui::EndChild();
}

view::DetailLines CompareView::details(const ViewContext& context) {
  if (!use(context) || !context.session.selection) {
    return {};
  }
  view::DetailLines lines;
  const std::optional<std::size_t> difference = chosen(context.session);
  if (difference) {
    const Comparison& it = *compared_->comparison;
    const OperationDifference& both = it.differences()[*difference];
    lines.emplace_back("what", it.name_of(both));
    lines.emplace_back("in A", view::time_text(both.a, true));
    lines.emplace_back("in B", view::time_text(both.b, true));
    lines.emplace_back("B - A", signed_time(both.difference()));
  } else {
    lines.emplace_back("only in B", "");
  }
  const app::Selection& selection = *context.session.selection;
  if (const auto at = box_of(b_, selection.rank, selection.operation)) {
    for (auto& line : b_.lanes->details(at->row, at->box)) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::string CompareView::text(const ViewContext& context) {
  if (!use(context)) {
    return ui::tr(errand_ == nullptr ? S::kCompareHow : S::kCompareBusy);
  }
  view::ComparisonTextOptions options;
  options.a_name = name_of(*compared_->a);
  options.b_name = name_of(*compared_->b);
  options.most = 30;
  return view::comparison_text(*compared_->comparison, options);
}

bool CompareView::json(JsonWriter& json, const ViewContext& context) {
  if (!use(context)) {
    return false;
  }
  json.field("a", name_of(*compared_->a));
  json.field("b", name_of(*compared_->b));
  view::write_comparison(json, *compared_->comparison);
  return true;
}

std::vector<KeyHelp> CompareView::keys() const {
  return {{", .", S::kCompareKeyWalk},
          {"Y", S::kCompareKeySync},
          {"W S", S::kKeyZoom},
          {"A D", S::kKeyPan},
          {"F", S::kFit},
          {"Z", S::kZoomSelection}};
}

}  // namespace lockstep::views
