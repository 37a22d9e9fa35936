#include "visualizer/views/memory_plot.h"

#include <array>
#include <cmath>

#include <fmt/format.h>
#include <imgui.h>

#include "core/report_text.h"
#include "visualizer/models/memory_stack_text.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

using ui::S;
using ui::scaled;

constexpr char kOutsideLetter = 'x';

const ui::Look& look_of(Category category) {
  return ui::theme().memory[static_cast<std::size_t>(category)];
}

const ui::Look& outside_look() {
  return ui::theme().memory[kCategoryCount];
}

}  // namespace

/// What the plan does not count on the ranks of a class.
std::int64_t outside_bytes(const MemoryReport& report, int class_index) {
  for (const RankMemory& rank : report.ranks) {
    if (rank.class_index == class_index) {
      return rank.non_tensor_bytes();
    }
  }
  return 0;
}

const char* category_text(Category category) {
  static constexpr std::array<S, kCategoryCount> kTexts{S::kMemParameter,
                                                        S::kMemGathered,
                                                        S::kMemGradient,
                                                        S::kOptimizer,
                                                        S::kMemActivation,
                                                        S::kMemLogits,
                                                        S::kMemCommunication,
                                                        S::kMemInput,
                                                        S::kMemTemporary};
  return ui::tr(kTexts[static_cast<std::size_t>(category)]);
}

void MemoryPlot::draw_legend(std::size_t sample) const {
  std::vector<ui::LegendEntry> entries;
  const CategoryBytes& bytes = stack.samples()[sample].bytes;
  for (const Category category : stack.categories()) {
    const std::int64_t held = bytes[static_cast<std::size_t>(category)];
    entries.push_back({look_of(category),
                       view::letter_of(category),
                       fmt::format("{} {}", category_text(category), bytes_text(held))});
  }
  if (outside > 0) {
    entries.push_back({outside_look(),
                       kOutsideLetter,
                       fmt::format("{} {}", ui::tr(S::kMemOther), bytes_text(outside))});
  }
  ui::draw_legend(entries);
  ui::tag("memory.held", std::to_string(total(bytes) + outside));
}

std::vector<ui::Band> MemoryPlot::bands(const ui::Plot& plot) const {
  const std::vector<view::MemoryColumn> columns =
      stack.columns(plot.time, ui::columns_in(plot.body.width()));
  std::vector<ui::Band> bands;
  for (const Category category : stack.categories()) {
    ui::Band& band = bands.emplace_back();
    band.look = look_of(category);
    band.letter = view::letter_of(category);
    band.name = category_text(category);
    for (const view::MemoryColumn& column : columns) {
      band.bytes.push_back(column.bytes[static_cast<std::size_t>(category)]);
    }
  }
  if (outside > 0) {
    bands.push_back({outside_look(),
                     kOutsideLetter,
                     ui::tr(S::kMemOther),
                     std::vector<std::int64_t>(columns.size(), outside)});
  }
  return bands;
}

void MemoryPlot::draw_limit(const ui::Plot& plot) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const bool drawn = limit <= plot.top;
  const std::string limit_text =
      ui::trf(drawn ? S::kMemoryLimit : S::kMemoryFar, bytes_text(limit));
  if (drawn) {
    ui::draw_limit(list, plot, limit, limit_text);
  } else if (plot.body.height() >= scaled(70)) {
    const float width = ui::text_width(*ui::state().fonts.small, limit_text) + scaled(6);
    // A line below the top: the peak's text may need all of that one.
    const float top = plot.body.min.y + scaled(18);
    ui::draw_plate(list, plot.body, ImVec2(plot.body.max.x - width, top), limit_text);
  }
}

void MemoryPlot::draw(app::Session& session,
                      const ImVec2& size,
                      Nanoseconds now,
                      const std::string& peak_text) const {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  if (size.x < scaled(120) || size.y < scaled(60)) {
    return;
  }
  ui::Plot plot;
  plot.time = stack.whole();
  plot.top = ui::plot_top(peak_bytes(), limit, near);
  const float head = std::floor(scaled(20));
  plot.body = {
      ImVec2(std::floor(origin.x + ui::byte_axis_width(plot.top)), std::floor(origin.y + head)),
      ImVec2(std::floor(origin.x + size.x), std::floor(origin.y + size.y - scaled(2)))};
  ImGui::SetCursorScreenPos(ImVec2(plot.body.min.x, origin.y));
  ImGui::InvisibleButton("##plot", ImVec2(plot.body.width(), size.y));
  if (ImGui::IsItemActive()) {
    session.cursor = plot.time_at(ImGui::GetIO().MousePos.x);
  }
  ui::tag_rect("memory.plot", plot.body.min, plot.body.max, std::to_string(now));
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 corner(plot.body.min.x, origin.y);
  ui::draw_time_axis(
      list, {corner, ImVec2(plot.body.max.x, plot.body.min.y)}, plot.body, plot.time);
  ui::draw_byte_axis(list, plot);
  ui::draw_stack(list, plot, bands(plot));
  draw_limit(plot);
  ui::draw_mark(list, plot, peak_time(), peak_bytes(), peak_text);
  ui::draw_cursor(list, plot.body, plot.time, now, view::time_text(now - plot.time.from, true));
}

}  // namespace lockstep::views
