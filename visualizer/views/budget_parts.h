// BudgetParts: what the files of BudgetView share: how strategies and bars are called.
#pragma once

#include <string>

#include <imgui.h>

#include "visualizer/ui/state.h"
#include "visualizer/views/budget_view.h"

namespace lockstep::views {

inline std::string title_of(const std::string& words) {
  return words == app::kOwnStrategy ? ui::tr(ui::S::kBudgetOwn) : words;
}

inline void muted_text(const std::string& text) {
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
  ImGui::TextWrapped("%s", text.c_str());
  ImGui::PopStyleColor();
}

inline std::string bar_title(const view::BudgetBar& bar) {
  return bar.count > 1 ? ui::trf(ui::S::kBudgetRanks, bar.rank, bar.count)
                       : ui::trf(ui::S::kBudgetRank, bar.rank);
}

}  // namespace lockstep::views
