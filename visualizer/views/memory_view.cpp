#include "visualizer/views/memory_view.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <imgui.h>

#include "core/report_text.h"
#include "visualizer/models/memory_stack_text.h"
#include "visualizer/models/view_json.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/play_bar.h"

namespace lockstep::views {
namespace {

using ui::S;
using ui::scaled;

constexpr std::size_t kNoSample = std::numeric_limits<std::size_t>::max();

}  // namespace

void MemoryView::use(const app::DocumentPtr& document) {
  if (document == document_) {
    return;
  }
  stack_.reset();
  document_ = document;
  const TraceStep& step = document->shown_step();
  index_ = std::make_unique<TraceIndex>(document->plan, step);
  chooser_.use(step);
  make_stack();
}

void MemoryView::make_stack() {
  stack_ = std::make_unique<view::MemoryStack>(*index_, chooser_.rank());
  const TraceTrack& track = document_->shown_step().track(chooser_.rank());
  outside_ = outside_bytes(document_->memory, track.class_index);
  listed_at_ = kNoSample;
}

void MemoryView::draw_peak_text() const {
  const std::string text = ui::trf(S::kMemoryPeakAt,
                                   bytes_text(stack_->peak_bytes() + outside_),
                                   view::time_text(peak_time() - stack_->whole().from, true),
                                   stack_->peak_text());
  const std::string shown =
      ui::elided(*ui::state().fonts.text, text, ImGui::GetContentRegionAvail().x);
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(shown.c_str());
  ui::tag("memory.peak", std::to_string(stack_->peak_bytes() + outside_));
}

void MemoryView::draw(ViewContext& context, bool has_keys) {
  use(context.document);
  if (stack_->whole().length() <= 0) {
    ImGui::TextWrapped("%s", ui::tr(S::kMemoryEmpty));
    ui::tag("memory.empty");
    return;
  }
  if (chooser_.draw(has_keys)) {
    make_stack();
  }
  ImGui::SameLine();
  draw_peak_text();
  app::Session& session = context.session;
  const view::TimeWindow whole = stack_->whole();
  if (has_keys) {
    move_time(session, whole, time_of(session, whole, peak_time()));
    if (ui::chord(ui::Key::kM, ui::kPlain)) {
      session.cursor = peak_time();
    }
  }
  const Nanoseconds now = time_of(session, whole, peak_time());
  const MemoryPlot it = plot();
  it.draw_legend(stack_->sample_at(now));
  it.draw(session,
          ImGui::GetContentRegionAvail(),
          now,
          ui::trf(S::kMemoryPeak, bytes_text(it.peak_bytes())));
}

std::string MemoryView::text(const ViewContext& context) {
  use(context.document);
  return view::memory_stack_text(*stack_, context.session.cursor);
}

bool MemoryView::json(JsonWriter& json, const ViewContext& context) {
  use(context.document);
  view::write_memory_stack(json, *stack_, context.cursor_in_step());
  return true;
}

void MemoryView::draw_rows() const {
  const Nanoseconds begin = stack_->whole().from;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(listed_.size()));
  while (clipper.Step()) {
    for (int row = clipper.DisplayStart; row < clipper.DisplayEnd; ++row) {
      const view::MemoryItem& it = listed_[static_cast<std::size_t>(row)];
      const std::string name = stack_->name(it);
      const bool before = it.allocated == kNoSpan;
      const bool after = it.freed == kNoSpan;
      const std::string since =
          before ? ui::tr(S::kMemoryBefore) : view::time_text(it.since - begin, true);
      const std::string until =
          after ? ui::tr(S::kMemoryAfter) : view::time_text(it.until - begin, true);
      const std::string category =
          fmt::format("{} {}", view::letter_of(it.category), category_text(it.category));
      ImGui::TableNextRow();
      for (const std::string& cell : {bytes_text(it.bytes), category, since, until, name}) {
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(cell.c_str());
      }
      ui::tag(fmt::format("memory.row.{}", row), fmt::format("{} {}", it.bytes, name));
    }
  }
}

void MemoryView::draw_details(ViewContext& context) {
  use(context.document);
  const Nanoseconds now = time_of(context.session, stack_->whole(), peak_time());
  const std::size_t sample = stack_->sample_at(now);
  if (sample != listed_at_) {
    listed_at_ = sample;
    listed_ = stack_->alive(sample);
  }
  const std::string title = ui::trf(S::kMemoryHeld,
                                    view::time_text(now - stack_->whole().from, true),
                                    bytes_text(total(stack_->samples()[sample].bytes)),
                                    listed_.size());
  ImGui::TextWrapped("%s", title.c_str());
  ui::tag("memory.title", title);
  const ImGuiTableFlags flags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("##held", 5, flags)) {
    return;
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const S column : {S::kMemorySize, S::kMemoryCategory, S::kMemorySince, S::kMemoryUntil}) {
    ImGui::TableSetupColumn(ui::tr(column));
  }
  ImGui::TableSetupColumn(ui::tr(S::kMemoryName), ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableHeadersRow();
  draw_rows();
  ImGui::EndTable();
}

std::vector<KeyHelp> MemoryView::keys() const {
  return {{"\xE2\x86\x90 \xE2\x86\x92", S::kKeyTime},
          {"M", S::kKeyToPeak},
          {"", S::kKeyPoint},
          RankChooser::keys()};
}

}  // namespace lockstep::views
