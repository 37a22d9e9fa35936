// StepsView: what is asked for, the buttons that step, the words around the picture.
#include <algorithm>

#include <fmt/format.h>

#include "core/report_text.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/steps_parts.h"
#include "visualizer/views/steps_view.h"

namespace lockstep::views {
namespace {

using ui::S;
using ui::scaled;

float button_width(const std::string& text) {
  return ImGui::CalcTextSize(text.c_str()).x + 2 * ImGui::GetStyle().FramePadding.x;
}

/// On the same line while there is room for so many pixels.
void flow(float width) {
  const float right = ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x;
  if (ImGui::GetItemRectMax().x + ImGui::GetStyle().ItemSpacing.x + width <= right) {
    ImGui::SameLine();
  }
}

bool button(const std::string& text, const char* tag, bool enabled = true, bool first = false) {
  if (!first) {
    flow(button_width(text));
  }
  ImGui::BeginDisabled(!enabled);
  ImGui::PushStyleColor(ImGuiCol_Text, enabled ? ui::theme().text : ui::theme().disabled);
  const bool hit = ImGui::Button(fmt::format("{}##{}", text, tag).c_str());
  ImGui::PopStyleColor();
  ImGui::EndDisabled();
  ui::tag(tag, "", enabled);
  return hit && enabled;
}

}  // namespace

void StepsView::draw_request(app::Session& session) {
  app::CollectiveRequest request = wanted_;
  for (std::size_t i = 0; i < kAlgorithms.size(); ++i) {
    const std::string name = kAlgorithms[i];
    if (i > 0) {
      flow(ImGui::CalcTextSize(name.c_str()).x + 1.5F * ImGui::GetFrameHeight());
    }
    if (ImGui::RadioButton(name.c_str(), wanted_.algorithm == name)) {
      request.algorithm = name;
    }
    ui::tag("steps." + name, wanted_.algorithm == name ? "current" : "");
  }
  const auto stepper = [&](const std::string& text, const char* less, const char* more) {
    flow(button_width(text) + 2 * ImGui::GetFrameHeight() + scaled(16));
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(text.c_str());
    int direction = 0;
    if (button("\xE2\x88\x92", less)) {
      direction = -1;
    }
    if (button("+", more)) {
      direction = 1;
    }
    return direction;
  };
  const int ranks =
      stepper(ui::trf(S::kStepsRanks, wanted_.ranks), "steps.ranks.less", "steps.ranks.more");
  if (ranks != 0) {
    request.ranks = std::clamp(request.ranks + ranks, kFewestRanks, kMostRanks);
  }
  const int size = stepper(bytes_text(wanted_.bytes), "steps.size.less", "steps.size.more");
  if (size != 0) {
    const std::int64_t bytes = size > 0 ? request.bytes * 2 : request.bytes / 2;
    request.bytes = std::clamp(bytes, kLeastBytes, kMostBytes);
  }
  if (request != wanted_) {
    ask(session, request);
  }
}

void StepsView::draw_controls() {
  const bool words = ImGui::GetContentRegionAvail().x >= scaled(430);
  const auto shown = [&](S word, const char* symbol) {
    return std::string(words ? ui::tr(word) : symbol);
  };
  const bool at_begin = now_.steps_done == 0;
  const bool at_end = now_.steps_done == count();
  if (button(shown(S::kStepsFirst, "|<"), "steps.first", !at_begin, true)) {
    go_to(0);
  }
  if (button(shown(S::kStepsBack, "<"), "steps.back", !at_begin)) {
    go_to(now_.steps_done - 1);
  }
  if (button(ui::tr(playing_ ? S::kStepsPause : S::kStepsPlay), "steps.play", !at_end)) {
    playing_ = !playing_;
    waited_ = 0;
  }
  if (button(shown(S::kStepsForth, ">"), "steps.forth", !at_end)) {
    go_to(now_.steps_done + 1);
  }
  if (button(shown(S::kStepsPhase, ">>"), "steps.phase", !at_end)) {
    go_to_phase(1);
  }
  if (button(shown(S::kStepsLast, ">|"), "steps.last", !at_end)) {
    go_to(count());
  }
  if (button(ui::tr(circle_ ? S::kStepsRow : S::kStepsCircle), "steps.layout")) {
    circle_ = !circle_;
  }
}

void StepsView::draw_headline() const {
  const CollectiveRecord& head = steps_->head();
  std::string text = ui::trf(S::kStepsTitle,
                             name_of(head.collective),
                             bytes_text(head.message_bytes),
                             head.algorithm,
                             head.ranks,
                             now_.steps_done,
                             count());
  text += ". ";
  text += step() == nullptr ? ui::tr(S::kStepsBefore)
                            : ui::tr(step()->reduces ? S::kStepsReduce : S::kStepsCopy);
  ImGui::TextWrapped("%s", text.c_str());
  ui::tag("steps.position", std::to_string(now_.steps_done));
  for (const std::string& problem : steps_->problems()) {
    ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().bad);
    ImGui::TextWrapped("%s", ui::trf(S::kStepsWrong, problem).c_str());
    ImGui::PopStyleColor();
    ui::tag("steps.problem", problem);
  }
}

void StepsView::draw_legend() const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImFont* font = ui::state().fonts.small;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float right = origin.x + ImGui::GetContentRegionAvail().x;
  ImVec2 at = origin;
  const std::string more =
      ui::trf(S::kStepsMore, static_cast<int>(steps_->chunks().size()) - drawn_chunks_);
  std::vector<std::string> entries{ui::tr(S::kStepsLegendPart),
                                   ui::tr(S::kStepsLegendAll),
                                   ui::tr(S::kStepsReduce),
                                   ui::tr(S::kStepsCopy)};
  if (drawn_chunks_ > 0 && drawn_chunks_ < static_cast<int>(steps_->chunks().size())) {
    entries.push_back(more);
  }
  for (const std::string& entry : entries) {
    const float width = ui::text_width(*font, entry);
    if (at.x > origin.x && at.x + width > right) {
      at = ImVec2(origin.x, at.y + line_height());
    }
    ui::text_at(list, font, at, ui::theme().muted, ui::elided(*font, entry, right - at.x));
    at.x += width + scaled(16);
  }
  ImGui::Dummy(ImVec2(1, at.y - origin.y + line_height()));
}

void StepsView::draw_totals() const {
  const ImGuiTableFlags flags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("##totals", 5, flags)) {
    return;
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const S title : {S::kSplitRank,
                        S::kStepsSentNow,
                        S::kStepsSentSoFar,
                        S::kStepsSentAll,
                        S::kStepsReceivedAll}) {
    ImGui::TableSetupColumn(ui::tr(title));
  }
  ImGui::TableHeadersRow();
  for (int rank = 0; rank < steps_->ranks(); ++rank) {
    const std::int64_t now = now_.steps_done == 0 ? 0 : steps_->sent_in(now_.steps_done - 1, rank);
    ImGui::TableNextRow();
    for (const std::string& text : {std::to_string(rank),
                                    bytes_text(now),
                                    bytes_text(sent_[static_cast<std::size_t>(rank)]),
                                    bytes_text(steps_->sent_bytes(rank)),
                                    bytes_text(steps_->received_bytes(rank))}) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(text.c_str());
    }
    ui::tag(fmt::format("steps.received.{}", rank), std::to_string(steps_->received_bytes(rank)));
  }
  ImGui::EndTable();
}

}  // namespace lockstep::views
