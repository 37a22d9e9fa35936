// CompareView: differences by operation and by sum, as tables.
#include <algorithm>

#include <fmt/format.h>

#include "visualizer/models/timeline_text.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/compare_parts.h"
#include "visualizer/views/compare_view.h"

namespace lockstep::views {
namespace {

using ui::S;
using ui::scaled;
using view::Comparison;
using view::OperationDifference;

constexpr std::size_t kMostLone = 500;

std::string ranks_text(std::int32_t rank, std::int32_t count) {
  return count > 1 ? fmt::format("{} (x {})", rank, count) : std::to_string(rank);
}

}  // namespace

void CompareView::draw_difference(ViewContext& context, std::size_t index) {
  const Comparison& it = *compared_->comparison;
  const OperationDifference& difference = it.differences()[index];
  const bool is_chosen = chosen(context.session) == index;
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  difference_text(difference.difference());
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(view::time_text(difference.a, true).c_str());
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(view::time_text(difference.b, true).c_str());
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(ranks_text(difference.rank, difference.ranks).c_str());
  ImGui::TableNextColumn();
  const std::string name = fmt::format("{}##{}", it.name_of(difference), index);
  if (ImGui::Selectable(name.c_str(), is_chosen, ImGuiSelectableFlags_SpanAllColumns)) {
    context.session.selection = app::Selection{difference.rank, difference.b_operation};
  }
  ui::tag(fmt::format("compare.row.{}", index), std::to_string(difference.difference()));
}

void CompareView::draw_lone(const view::LoneOperation& it, bool in_b, std::size_t index) {
  const Comparison& comparison = *compared_->comparison;
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(ui::tr(in_b ? S::kCompareOnlyB : S::kCompareOnlyA));
  ui::tag(fmt::format("compare.only_{}.{}", in_b ? "b" : "a", index));
  const std::string time = view::time_text(it.time, true);
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(in_b ? "-" : time.c_str());
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(in_b ? time.c_str() : "-");
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(ranks_text(it.rank, it.ranks).c_str());
  ImGui::TableNextColumn();
  const std::string name = in_b ? comparison.name_of_b(it) : comparison.name_of_a(it);
  ImGui::TextUnformatted(name.c_str());
}

void CompareView::draw_differences(ViewContext& context) {
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg |
                                     ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerV;
  if (!ImGui::BeginTable("##differences", 5, kFlags)) {
    return;
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const char* title : {ui::tr(S::kCompareDifference), "A", "B", ui::tr(S::kCompareRanks)}) {
    ImGui::TableSetupColumn(title, ImGuiTableColumnFlags_WidthFixed, scaled(72));
  }
  ImGui::TableSetupColumn(ui::tr(S::kCompareWhat), ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableHeadersRow();
  const Comparison& it = *compared_->comparison;
  const std::size_t pairs = it.differences().size();
  const std::size_t only_a = std::min(kMostLone, it.only_a().size());
  const std::size_t only_b = std::min(kMostLone, it.only_b().size());
  const float line = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
  if (const auto now = chosen(context.session); now && scroll_to_chosen_) {
    ImGui::SetScrollY(std::max(0.0F, (static_cast<float>(*now) - 2) * line));
  }
  scroll_to_chosen_ = false;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(pairs + only_a + only_b), line);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const auto row = static_cast<std::size_t>(i);
      if (row < pairs) {
        draw_difference(context, row);
      } else if (row < pairs + only_a) {
        draw_lone(it.only_a()[row - pairs], false, row - pairs);
      } else {
        draw_lone(it.only_b()[row - pairs - only_a], true, row - pairs - only_a);
      }
    }
  }
  ImGui::EndTable();
}

void CompareView::draw_sums(const char* id,
                            S title,
                            const std::vector<view::SumDifference>& sums) const {
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg;
  if (!ImGui::BeginTable(id, 4, kFlags)) {
    return;
  }
  for (const char* head : {ui::tr(title), "A", "B", ui::tr(S::kCompareDifference)}) {
    ImGui::TableSetupColumn(head);
  }
  ImGui::TableHeadersRow();
  for (const view::SumDifference& it : sums) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const std::string_view name = ui::term(it.name);
    ImGui::TextUnformatted(name.data(), name.data() + name.size());
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(view::time_text(std::llround(it.a), true).c_str());
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(view::time_text(std::llround(it.b), true).c_str());
    ImGui::TableNextColumn();
    difference_text(std::llround(it.difference()));
    ui::tag(fmt::format("compare.sum.{}", it.name), fmt::format("{:.0f}", it.difference()));
  }
  ImGui::EndTable();
}

}  // namespace lockstep::views
