#include "visualizer/app/metric_cards.h"

#include <array>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>

#include "visualizer/models/metrics.h"
#include "visualizer/ui/draw.h"
#include "visualizer/ui/state.h"

namespace lockstep::app {
namespace {

using ui::S;
using view::Metric;

struct Title {
  const char* tag;
  S text;
};

/// By MetricId.
constexpr std::array<Title, 7> kTitles{{{"step_time", S::kMetricStep},
                                        {"tokens", S::kMetricTokens},
                                        {"mfu", S::kMetricMfu},
                                        {"peak_memory", S::kMetricPeak},
                                        {"exposed", S::kMetricExposed},
                                        {"bubble", S::kMetricBubble},
                                        {"sent", S::kMetricSent}}};

void muted_text(std::string_view text) {
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopTextWrapPos();
  ImGui::PopStyleColor();
}

void difference(const Metric& now, const Metric& before, const char* id) {
  const std::string text = view::difference_text(now, before);
  if (text.empty()) {
    return;
  }
  const bool better = (now.value < before.value) == now.less_is_better;
  // An arrow says it too, for those who do not see the colour.
  const std::string shown = (now.value < before.value ? "\xE2\x96\xBC " : "\xE2\x96\xB2 ") + text;
  ImGui::PushStyleColor(ImGuiCol_Text, better ? ui::theme().good : ui::theme().bad);
  ImGui::TextUnformatted(shown.c_str());
  ImGui::PopStyleColor();
  ui::tag(fmt::format("metric.{}.difference", id), text);
}

void card(const Metric& metric, const Metric* before, bool bad) {
  const Title& title = kTitles[static_cast<std::size_t>(metric.id)];
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.ChannelsSplit(2);
  list.ChannelsSetCurrent(1);
  const float pad = ui::scaled(7);
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const float right = corner.x + ImGui::GetContentRegionAvail().x;
  ImGui::SetCursorScreenPos(ImVec2(corner.x + pad, corner.y + pad));
  ImGui::BeginGroup();
  ImGui::PushItemWidth(right - corner.x - 2 * pad);
  muted_text(ui::tr(title.text));
  ImGui::PushFont(ui::state().fonts.large);
  ImGui::PushStyleColor(ImGuiCol_Text, bad ? ui::theme().bad : ui::theme().text);
  ImGui::TextUnformatted(metric.text.c_str());
  ImGui::PopStyleColor();
  ImGui::PopFont();
  ui::tag(fmt::format("metric.{}", title.tag), fmt::format("{:.17g}", metric.value));
  if (before != nullptr) {
    difference(metric, *before, title.tag);
  }
  if (!metric.note.empty()) {
    muted_text(metric.note);
  }
  if (bad) {
    ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().bad);
    ImGui::TextUnformatted(ui::tr(S::kDoesNotFit));
    ImGui::PopStyleColor();
  }
  ImGui::PopItemWidth();
  ImGui::EndGroup();
  const float bottom = ImGui::GetItemRectMax().y + pad;
  list.ChannelsSetCurrent(0);
  list.AddRectFilled(corner, ImVec2(right, bottom), ui::theme().raised, ui::scaled(4));
  list.ChannelsMerge();
  ImGui::SetCursorScreenPos(ImVec2(corner.x, bottom + ui::scaled(6)));
  ImGui::Dummy(ImVec2(1, 0));
}

}  // namespace

void draw_metric_cards(Session& session) {
  const DocumentPtr& document = session.document();
  if (document == nullptr) {
    return;
  }
  const bool simulated = document->trace.source == TraceSource::kSimulated;
  muted_text(session.busy() ? ui::tr(S::kWorking)
                            : ui::tr(simulated ? S::kSimulated : S::kMeasured));
  ui::tag("source", simulated ? "simulated" : "measured");
  const std::vector<Metric> now = view::metrics(document->report, document->memory);
  std::vector<Metric> before;
  if (session.baseline() != nullptr) {
    before = view::metrics(session.baseline()->report, session.baseline()->memory);
  }
  for (std::size_t i = 0; i < now.size(); ++i) {
    const bool bad = now[i].id == view::MetricId::kPeakMemory && !document->memory.fits();
    card(now[i], before.empty() ? nullptr : &before[i], bad);
  }
  if (session.baseline() == nullptr) {
    muted_text(ui::tr(S::kNoBaseline));
  }
  const bool pinned = session.baseline() != nullptr;
  if (ImGui::Button(ui::tr(pinned ? S::kUnpin : S::kPin), ImVec2(-1, 0))) {
    if (pinned) {
      session.unpin();
    } else {
      session.pin();
    }
  }
  ui::tag("pin", pinned ? "pinned" : "");
}

}  // namespace lockstep::app
