#include "visualizer/views/rank_chooser.h"

#include <algorithm>

#include <imgui.h>

#include "visualizer/models/timeline.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

constexpr int kMostRanks = 64;

}  // namespace

void RankChooser::use(const TraceStep& step) {
  ranks_ = view::usual_ranks(step, kMostRanks);
  texts_.clear();
  for (const int rank : ranks_) {
    const std::size_t others = step.track(rank).ranks.size() - 1;
    texts_.push_back(others == 0 ? ui::trf(ui::S::kRankAlone, rank)
                                 : ui::trf(ui::S::kRankAndOthers, rank, others));
  }
  if (std::find(ranks_.begin(), ranks_.end(), rank_) == ranks_.end()) {
    rank_ = ranks_.front();
  }
}

bool RankChooser::draw(bool has_keys) {
  const auto at =
      static_cast<std::size_t>(std::find(ranks_.begin(), ranks_.end(), rank_) - ranks_.begin());
  std::size_t next = at;
  float width = 0;
  for (const std::string& text : texts_) {
    width = std::max(width, ImGui::CalcTextSize(text.c_str()).x);
  }
  ImGui::SetNextItemWidth(width + 2 * ImGui::GetFrameHeight());
  if (ImGui::BeginCombo("##rank", texts_[at].c_str())) {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (ImGui::Selectable(texts_[i].c_str(), i == at)) {
        next = i;
      }
      ui::tag("rank." + std::to_string(ranks_[i]));
    }
    ImGui::EndCombo();
  } else {
    ui::tag("rank", std::to_string(rank_));
  }
  if (has_keys && ui::chord(ui::Key::kPageUp, ui::kPlain, true) && at > 0) {
    next = at - 1;
  }
  if (has_keys && ui::chord(ui::Key::kPageDown, ui::kPlain, true) && at + 1 < ranks_.size()) {
    next = at + 1;
  }
  rank_ = ranks_[next];
  return next != at;
}

}  // namespace lockstep::views
